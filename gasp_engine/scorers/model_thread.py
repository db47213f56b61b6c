"""One thread in which all models of this process run on the processor.

PyTorch's parallel loops keep a team of threads for every thread that calls them. As soon as the
teams together have more threads than there are cores, theirs go to sleep at the end of every loop
instead of waiting for the next one, which makes each pass a fifth slower. With a server's request
threads, or a session's beside the main thread, that is always so; with one calling thread never.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import torch

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_current = threading.local()
_lock = threading.Lock()
_executor: ThreadPoolExecutor | None = None


def run_model(
    device: torch.device,
    function: Callable[_Arguments, _Result],
    *args: _Arguments.args,
    **kwargs: _Arguments.kwargs,
) -> _Result:
    """Call a function that runs a model on `device`, in the thread where that belongs, and wait.

    It runs with the number of threads that the caller's PyTorch is set to. A caller that is
    interrupted while it waits leaves the call to finish by itself.
    """
    if device.type != "cpu" or getattr(_current, "is_model_thread", False):
        return function(*args, **kwargs)
    threads = torch.get_num_threads()

    def run() -> _Result:
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        return function(*args, **kwargs)

    return _the_executor().submit(run).result()


def _the_executor() -> ThreadPoolExecutor:
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(1, "gasp-model", initializer=_mark)
        return _executor


def _mark() -> None:
    _current.is_model_thread = True


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

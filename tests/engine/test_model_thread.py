"""All models on the processor run in one thread, as if in the caller's."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from gasp_engine.scorers.model_thread import run_model

CPU = torch.device("cpu")


def test_calls_from_many_threads_run_in_one_other_thread():
    with ThreadPoolExecutor(4) as pool:
        seen = set(pool.map(lambda _: run_model(CPU, threading.get_ident), range(20)))
    assert len(seen) == 1
    assert threading.get_ident() not in seen


def test_a_call_from_within_runs_on_the_spot_and_another_device_needs_no_thread():
    inner = run_model(CPU, lambda: run_model(CPU, threading.get_ident))
    assert inner == run_model(CPU, threading.get_ident)
    assert run_model(torch.device("meta"), threading.get_ident) == threading.get_ident()


def test_errors_reach_the_caller_and_the_next_call_works():
    def fail(what: str) -> None:
        raise ValueError(what)

    with pytest.raises(ValueError, match="this one"):
        run_model(CPU, fail, "this one")
    assert run_model(CPU, lambda: 3) == 3


def test_it_runs_with_the_callers_number_of_threads():
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            assert run_model(CPU, torch.get_num_threads) == count
    finally:
        torch.set_num_threads(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_makes_a_thread_of_its_own():
    assert run_model(CPU, lambda: 1) == 1
    child = os.fork()
    if not child:
        os._exit(0 if run_model(CPU, lambda: 7) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

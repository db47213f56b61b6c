"""One engine for each set of settings, however often a runnable is copied.

LangChain rebuilds a runnable from its fields whenever a configurable field is overridden, and a
pickle carries settings alone; without this each of them would load the model again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from gasp_engine import GroundingChecker

MAX_ENGINES = 4
"""How many engines are kept; the one that was used longest ago is let go first."""

_engines: OrderedDict[tuple[tuple[str, Any], ...], GroundingChecker] = OrderedDict()
_lock = threading.Lock()


def engine_for(model: str, settings: Mapping[str, Any]) -> GroundingChecker:
    """The engine for a model and its settings, loaded at the first call.

    Args:
        model: a name, a path or `"embedded"`.
        settings: keyword arguments of `GroundingChecker.from_pretrained` that decide how the model
            is loaded; hashable values.
    """
    key = (("model", model), *sorted(settings.items(), key=lambda item: item[0]))
    with _lock:  # held while loading, so that two threads do not load the same model twice
        if key not in _engines:
            _engines[key] = GroundingChecker.from_pretrained(model, **settings)
            while len(_engines) > MAX_ENGINES:
                _engines.popitem(last=False)
        _engines.move_to_end(key)
        return _engines[key]

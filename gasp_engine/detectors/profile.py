"""Calibration profiles: what scores mean for one scorer under one set of settings, as JSON.

A profile holds numbers and where they come from (command, data, date), never any text of the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ModelLoadError
from ..scorers.base import ScorerInfo

MATCHED = ("mode", "prompt", "dtype")
"""Settings that change the features: a profile made under others gives a warning."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Calibration for one scorer and one detector."""

    name: str
    """Shown in the report."""
    scorer: str
    """Name of the scorer that it was made with."""
    settings: Mapping[str, str]
    """`mode`, `prompt`, `dtype`, … of that scorer."""
    detector: str
    """Name of the detector whose scores it calibrates."""
    threshold: float
    """Scores above it are flagged."""
    statistics: Mapping[str, tuple[float, float]] = field(
        default_factory=dict[str, tuple[float, float]]
    )
    """Per feature, mean and standard deviation over spans."""
    operating_points: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    """Thresholds to choose from, by name, and what each does; see `evaluation.operating`."""
    platt: tuple[float, float] | None = None
    """(a, b): probability = 1 / (1 + exp(−(a·score + b))); None: no probabilities."""
    quality: Mapping[str, float] = field(default_factory=dict[str, float])
    """What was measured of it, such as `auc` and `ece`."""
    source: Mapping[str, str] = field(default_factory=dict[str, str])
    """`command`, `data`, `date`, `n_spans`."""

    def probability(self, scores: np.ndarray) -> np.ndarray | None:
        """[S] calibrated probabilities that spans are unsupported; None without calibration."""
        if self.platt is None:
            return None
        a, b = self.platt
        return 1.0 / (1.0 + np.exp(-(a * np.asarray(scores, dtype=np.float64) + b)))

    @property
    def is_partial(self) -> bool:
        """Whether it was made from published features, which know neither tokens nor words."""
        return "surprisal_top" not in self.statistics

    def mismatches(self, info: ScorerInfo) -> list[str]:
        """Warnings where the scorer's settings are not those that the profile was made with."""
        used = asdict(info)
        pairs = [(k, self.settings[k], used[k]) for k in MATCHED if k in self.settings]
        wrong = [f"{k} {made!r}, used with {k} {now!r}" for k, made, now in pairs if made != now]
        if self.scorer != info.name:
            wrong.insert(0, f"scorer {self.scorer!r}, used with scorer {info.name!r}")
        if not wrong:
            return []
        return [
            f"calibration profile {self.name!r} was made with {'; '.join(wrong)}: thresholds may "
            f"be off. Make one for these settings with: gasp-engine calibrate"
        ]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Profile:
        """The profile that `to_dict` was called on; unknown fields are ignored."""
        known = {k: v for k, v in values.items() if k in cls.__dataclass_fields__}
        needed = ("name", "scorer", "settings", "detector", "threshold")
        missing = [k for k in needed if k not in known]
        if missing:
            raise ValueError(f"it lacks {', '.join(missing)}")
        known["statistics"] = {k: tuple(v) for k, v in known.get("statistics", {}).items()}
        if known.get("platt") is not None:
            known["platt"] = tuple(known["platt"])
        return cls(**known)

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        text = json.dumps(self.to_dict(), indent=2, sort_keys=True, allow_nan=False)
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read one that `save` wrote, or the packaged one of that name.

        Raises:
            ModelLoadError: not a profile; names the path.
        """
        for packaged in packaged_profiles():
            if packaged.name == str(path):
                return packaged
        try:
            return cls.from_dict(json.loads(Path(path).read_text("utf-8")))
        except OSError as error:
            names = ", ".join(p.name for p in packaged_profiles())
            raise ModelLoadError(
                f"no calibration profile {str(path)!r}: neither a file nor one of {names}"
            ) from error
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise ModelLoadError(
                f"{path} is not a calibration profile: {error}. Make one with: "
                f"gasp-engine calibrate"
            ) from error


@cache
def packaged_profiles() -> tuple[Profile, ...]:
    """The profiles that ship with the project."""
    folder = files("gasp_engine").joinpath("profiles")
    if not folder.is_dir():
        return ()
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".json")), key=lambda f: f.name)
    return tuple(Profile.from_dict(json.loads(f.read_text("utf-8"))) for f in found)


def load_profile(info: ScorerInfo) -> Profile | None:
    """The packaged profile made with this scorer, nearest in settings; None: there is none."""
    own = [p for p in packaged_profiles() if p.scorer == info.name]
    return min(own, key=lambda p: len(p.mismatches(info)) and 1, default=None)

"""`gasp-engine models`: scorers that have a profile, and whether the embedded one is here."""

from __future__ import annotations

import argparse
import sys
from typing import Any

NAME = "models"


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    commands.add_parser(
        NAME, help="list scorers that have a calibration profile", description=__doc__
    )


def run(args: argparse.Namespace) -> int:
    """Print one line a profile."""
    del args
    from ..detectors import packaged_profiles
    from ..scorers.embedded import find_weights

    try:
        place = str(find_weights())
    except ImportError as error:
        place = f"missing: {error}"
    sys.stdout.write(f"embedded scorer: {place}\n")
    for profile in packaged_profiles():
        settings = ", ".join(f"{k}={v}" for k, v in profile.settings.items())
        sys.stdout.write(f"profile {profile.name}: {settings}\n")
    return 0

"""What cutting 1 MB into sentences costs, ordinary and hostile text, and twice as much.

    python benchmarks/segmenting.py [--quick] [--json]

Processor seconds, the best of three. The texts are those of the property tests.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from gasp_engine.segment import segment

MEGABYTE = 1_000_000


def seconds(text: str, rounds: int) -> float:
    """The best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        segment(text)
        best = min(best, time.process_time() - begin)
    return best


def main() -> int:
    """Print a table; with `--json` also one object as the last line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.engine.test_segment_properties import HOSTILE

    rounds = 1 if args.quick else 3
    rows: dict[str, dict[str, float]] = {}
    for name, unit in {"prose": "The dam opened in 1931. It holds water. ", **HOSTILE}.items():
        half, whole = (seconds(unit * (n // len(unit)), rounds) for n in (MEGABYTE // 2, MEGABYTE))
        rows[name] = {"one_mb_s": whole, "doubling": whole / max(half, 1e-9)}
        print(f"{name:34} {whole:6.2f} s  doubling {rows[name]['doubling']:4.1f}x")
    if args.json:
        print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

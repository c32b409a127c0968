"""Measures how long bash waits for names of commands: ``python bench/speed/completion.py``, median of 21 runs."""

import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

RUNS = 21
PILOTLIGHT = Path(sys.executable).parent / "pilotlight"
LINES = {"a command's name": "pilotlight pl", "an option": "pilotlight plan --o"}


def wait_s(line: str) -> float:
    """Seconds until one answer is there."""
    asks = {"_PILOTLIGHT_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    began = perf_counter()
    words = ["env", *(f"{name}={value}" for name, value in asks.items()), str(PILOTLIGHT)]
    subprocess.run(words, check=True, capture_output=True)
    return perf_counter() - began


if __name__ == "__main__":
    for what, line in LINES.items():
        print(f"{what}: {1000 * median(wait_s(line) for _ in range(RUNS)):.0f} ms")

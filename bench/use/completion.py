"""Measures how long bash waits for completion: ``python bench/use/completion.py``, the median of 21 answers of each.

Beside it stands a Python that does nothing, asked for in turn, so that a busy machine weighs on both alike.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

RUNS = 21
PILOTLIGHT = str(Path(sys.executable).parent / "pilotlight")
LINES = {
    "a command's name": "pilotlight pl",
    "a group's command": "pilotlight manifests qu",
    "an option": "pilotlight plan --o",
    "an option's value": "pilotlight replay --placement h",
}


def wait_s(words: list[str], **variables: str) -> float:
    """Seconds until one process has answered."""
    began = perf_counter()
    subprocess.run(words, check=True, capture_output=True, env={**os.environ, **variables})
    return perf_counter() - began


def asked(line: str) -> dict[str, str]:
    """What bash sets as it asks for the line's last word."""
    return {
        "_PILOTLIGHT_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }


if __name__ == "__main__":
    runs = [
        {
            "nothing": wait_s([sys.executable, "-c", "pass"]),
            **{what: wait_s([PILOTLIGHT], **asked(line)) for what, line in LINES.items()},
        }
        for _ in range(RUNS)
    ]
    nothing = median(run["nothing"] for run in runs)
    print(f"python -c pass: {1000 * nothing:.0f} ms")
    for what in LINES:
        waited = median(run[what] for run in runs)
        print(f"{what}: {1000 * waited:.0f} ms, {waited / nothing:.1f} times as long")

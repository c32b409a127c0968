"""Plans of random clusters compared with those of another commit, to the byte.

Usage: python bench/same_plans.py COMMIT [--seeds 0..499] [--json]
Each seed is a cluster with at least two features on (``bench/random_looks.py``). Both commits plan it in a process of
their own; purchases, verdicts, findings, dollars and times are compared. Exit code 1 where any differ.
"""

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
NEW = ("again",)
"""Fields of a plan that an older commit may lack."""


def plans(first: int, last: int) -> dict[str, Any]:
    """The plan of each seed, by the package that this process imports."""
    from random_looks import look_of

    from pilotlight.decide import plan as room

    found: dict[str, Any] = {}
    for seed in range(first, last + 1):
        parts = look_of(seed)
        features = parts.pop("features")
        if "look" in signature(room.plan_cluster).parameters:
            from pilotlight.decide.work import Look

            made = room.plan_cluster(Look(**parts))
        else:
            made = room.plan_cluster(**parts)
        told = msgspec.to_builtins(made, str_keys=True)
        found[str(seed)] = {"features": features, "plan": {k: v for k, v in told.items() if k not in NEW}}
    return found


def _planned(package: Path, seeds: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--print", "--seeds", seeds]
    environment = {"PYTHONPATH": f"{package}:{ROOT / 'bench'}", "PYTHONHASHSEED": "0", "PATH": ""}
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _archive(commit: str, folder: Path) -> Path:
    packed = subprocess.run(
        ["git", "archive", commit, "shared", "data", "pyproject.toml"], check=True, capture_output=True, cwd=ROOT
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "shared"


def main() -> int:
    """Compare, print the counts and the first that differs."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("commit", nargs="?", help="the commit to compare with")
    words.add_argument("--seeds", default="0..499", help="from..to (0..499)")
    words.add_argument("--json", action="store_true", help="print JSON")
    words.add_argument("--print", action="store_true", help=argparse.SUPPRESS)
    options = words.parse_args()
    if options.print:
        print(json.dumps(plans(*map(int, options.seeds.split("..")))))
        return 0
    if options.commit is None:
        words.error("name a commit, as: python bench/same_plans.py HEAD~1")
    with tempfile.TemporaryDirectory() as folder:
        before = _planned(_archive(options.commit, Path(folder)), options.seeds)
    after = _planned(ROOT / "shared", options.seeds)
    differ = sorted((seed for seed in after if before[seed] != after[seed]), key=int)
    features = Counter(name for one in after.values() for name in one["features"])
    acted = sum(bool(one["plan"]["buys"]) for one in after.values())
    released = sum(any(n["verdict"] == "release" for n in one["plan"]["nodes"]) for one in after.values())
    counts = {"plans": len(after), "differ": differ, "with purchases": acted, "with releases": released}
    if options.json:
        print(json.dumps({**counts, "features": features}, indent=1))
    else:
        told = f"{len(after) - len(differ)} plans the same, {len(differ)} differ; {acted} buy, {released} release; "
        print(told + f"each of {len(features)} features is on in {min(features.values())} to {max(features.values())}")
        for seed in differ[:5]:
            on = ", ".join(after[seed]["features"])
            print(f"seed {seed} ({on}): {_first(before[seed]['plan'], after[seed]['plan'])}")
    return 1 if differ else 0


def _first(before: dict[str, Any], after: dict[str, Any]) -> str:
    """The first field that differs, as it was and as it is."""
    name = next(name for name in after if before.get(name) != after[name])
    return f"{name}: {str(before.get(name))[:300]} -> {str(after[name])[:300]}"


if __name__ == "__main__":
    sys.exit(main())

"""Which files of the package a purchase enters: from the body of a pod-pending event to its answer.

Bought is one node for one pod, with nothing lit or on its way: no gang, budget, spare nor nodes that are closed to
others, whose files are entered where there is one. Counted are files of which a function is called; imports, and calls
before (one event warms the process), are not. The world stands in for cluster and cloud and is counted apart.
"""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "shared" / "pilotlight"


def main() -> None:
    """Print the count, and the files by folder."""
    files = entered()
    ours = without_world(files)
    folders = Counter(name.rpartition("/")[0] or "." for name in ours)
    by_folder = ", ".join(f"{n} of {name}/" for name, n in sorted(folders.items()))
    print(f"a purchase enters {len(ours)} files: {by_folder}")
    if "--names" in sys.argv:
        print("\n".join(ours))
    print(f"with the world that stands in for cluster and cloud: {len(files)}")


def without_world(files: list[str]) -> list[str]:
    """The files that are entered whatever the cluster and the cloud are."""
    return [name for name in files if not name.startswith("world/")]


def entered() -> list[str]:
    """Every file that the purchase enters, by its path in the package."""
    from pilotlight.settings import Settings
    from pilotlight.wiring import App

    sample = (ROOT / "events" / "samples" / "kubernetes" / "pod_unschedulable.json").read_bytes()
    found: set[str] = set()
    for measured in (False, True):
        app = App(Settings(mode="act", outbox="memory:", state="memory:"))
        _create(app, sample)
        found = set()

        def enter(frame: FrameType, event: str, _: object, found: set[str] = found) -> None:
            if event == "call" and frame.f_code.co_name != "<module>":
                found.add(frame.f_code.co_filename)

        before = sys.getprofile()
        sys.setprofile(enter if measured else None)
        try:
            answer = app.receive("pod_pending", sample, {})
        finally:
            sys.setprofile(before)
        assert answer.body["outcome"] == "done", answer.body
    return sorted(str(Path(name).relative_to(PACKAGE)) for name in found if name.startswith(f"{PACKAGE}/"))


def _create(app: object, sample: bytes) -> None:
    from pilotlight.tools.serve import pods_to_world

    pods_to_world.create(app, sample, {})  # type: ignore[arg-type]


if __name__ == "__main__":
    main()

"""How many files of the package a purchase enters: from the body of a pod-pending event to its answer.

Counted are files of which a function is called; imports, and calls before (one event warms the process), are not.
"""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "shared" / "pilotlight"


def main() -> None:
    """Print the count, and the files by folder."""
    from pilotlight.settings import Settings
    from pilotlight.wiring import App

    sample = (ROOT / "events" / "samples" / "kubernetes" / "pod_unschedulable.json").read_bytes()
    for measured in (False, True):
        app = App(Settings(mode="act", outbox="memory:", state="memory:"))
        _create(app, sample)
        entered: Counter[str] = Counter()

        def enter(frame: FrameType, event: str, _: object, entered: Counter[str] = entered) -> None:
            if event == "call" and frame.f_code.co_name != "<module>":
                entered[frame.f_code.co_filename] += 1

        sys.setprofile(enter if measured else None)
        answer = app.receive("pod_pending", sample, {})
        sys.setprofile(None)
        assert answer.body["outcome"] == "done", answer.body
    files = sorted(str(Path(name).relative_to(PACKAGE)) for name in entered if name.startswith(f"{PACKAGE}/"))
    folders = Counter(name.rpartition("/")[0] or "." for name in files)
    print(
        f"a purchase enters {len(files)} files: " + ", ".join(f"{n} of {name}/" for name, n in sorted(folders.items()))
    )
    ours = [name for name in files if not name.startswith("world/")]
    if "--names" in sys.argv:
        print("\n".join(ours))
    print(f"without the world that stands in for cluster and cloud: {len(ours)}")


def _create(app: object, sample: bytes) -> None:
    from pilotlight.cli import world_pods

    world_pods.create(app, sample, {})  # type: ignore[arg-type]


if __name__ == "__main__":
    main()

"""Walks through the house: which files of the package one event enters, and how often it goes from file to file.

Usage: python bench/cold_start/purchase_files.py [--names [WALK]] [--json]
Each walk has a world on a clock of its own and a state in memory; what it needs happens before, and a first run warms
the process. Counted from the event's body to its answer: files of which a function is called, their lines, calls from a
function of one file to one of another, and those among them that go from one folder to another. Imports are not
counted, nor are the world, which stands in for cluster and cloud, and calls that it makes to answer.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.policy_file import read_policy
from pilotlight.doorway import Function
from pilotlight.settings import Settings
from pilotlight.tools.cli.printing import console
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = f"{ROOT / 'shared' / 'pilotlight'}/"
WORLD, FLOWS = f"{PACKAGE}world/", f"{PACKAGE}flow/"
SAMPLES = ROOT / "events" / "samples"
BEGINS = 0
"""What the RESUME of a function that begins has as its argument; one that goes on after a yield has another."""
NOW = datetime(2026, 11, 20, 9, 31, 30, tzinfo=UTC)

POOL = "v100: {instance_type: p3.2xlarge, max: 10, labels: {gpu: on-demand}}"
HOME = "taints: [{key: pilotlight.dev/home, value: new, effect: NoSchedule}]"
PLAIN = f"pools: {{{POOL}}}\nclasses: {{training: {{gpu_models: any}}}}\nvalue_of_wait: 30\n"
CAPPED = f"""
pools: {{t4: {{instance_type: g4dn.xlarge, max: 20}}, {POOL}}}
classes: {{training: {{gpu_models: any, max_runtime: 1d}}}}
value_of_wait: 30
budgets: [{{name: everything, usd: 900, period: day, hard: true}}]
"""
EVERYTHING_ON = f"""{CAPPED.replace("max: 10", f"max: 10, {HOME}")}
rules: [{{name: office, when: {{time: {{timezone: UTC, start: "08:00", end: "18:00"}}}}, set: {{max: {{t4: 5}}}}}}]
"""


class Stage(NamedTuple):
    """A deployment with a world of its own."""

    app: App
    world: World
    clock: VirtualClock

    def submit(self) -> None:
        """Create the pod of the sample in the world."""
        from pilotlight.tools.serve import pods_to_world

        pods_to_world.create(self.app, POD, {})

    def lit(self) -> None:
        """Buy a node for the pod, and let it run there for some minutes."""
        self.submit()
        self.app.receive("pod_pending", POD, {})
        self.world.advance(480)

    def idle(self) -> None:
        """The same, until the pod has ended and its node has been idle for hours."""
        self.lit()
        for at_s in (1200, 24000):
            self.app.receive("capacity_reconcile", TICK, {})
            self.world.advance(at_s)


class Walk(NamedTuple):
    """An event, the function that it comes to, the policy, and what has to happen before."""

    function: Function
    policy: str
    before: Callable[[Stage], object]
    body: Callable[[Stage], bytes]


class Walked(NamedTuple):
    """Figures of one walk."""

    files: tuple[str, ...]
    lines: int
    calls: int
    changes_of_room: int

    def as_json(self) -> dict[str, int]:
        """Figures without the names."""
        return {"files": len(self.files), **{name: getattr(self, name) for name in self._fields[1:]}}


POD = (SAMPLES / "kubernetes" / "pod_unschedulable.json").read_bytes()
TICK = (SAMPLES / "pilotlight" / "tick.json").read_bytes()


def _notice(stage: Stage) -> bytes:
    """The notice of a spot interruption of the one node that is lit."""
    sample = json.loads((SAMPLES / "pilotlight" / "interruption_notice.json").read_bytes())
    (node,), now = WorldCluster(stage.world).observe().nodes, stage.clock.now()
    moments = {"at": f"{now:%FT%TZ}", "deadline": f"{now + timedelta(minutes=2):%FT%TZ}"}
    told = {"cloud": "world", "instance": node.instance, "identity": node.instance, "zone": ""}
    return json.dumps(sample | {"data": sample["data"] | moments | told}).encode()


WALKS: Mapping[str, Walk] = {
    "plain purchase": Walk("pod_pending", PLAIN, Stage.submit, lambda _: POD),
    "everything on": Walk("pod_pending", EVERYTHING_ON, Stage.submit, lambda _: POD),
    "reconcile": Walk("capacity_reconcile", CAPPED, Stage.idle, lambda _: TICK),
    "billing tick": Walk("billing_tick", CAPPED, Stage.lit, lambda _: TICK),
    "notice": Walk("spot_interruption", CAPPED, Stage.lit, _notice),
}
"""Everything on is a hard budget, homes and a schedule."""


def walked(name: str) -> Walked:
    """Figures of a walk; it has to be answered as done, or as seen."""
    walk = WALKS[name]
    for _ in range(2):
        stage = _stage(walk.policy)
        walk.before(stage)
        body = walk.body(stage)
        with _watched() as calls:
            answer = stage.app.receive(walk.function, body, {})
        assert (answer.status, answer.body.get("outcome", "done")) == (200, "done"), answer.body
    files = tuple(sorted({to for _, to in calls if not to.startswith("world/")}))
    crossed = {pair: n for pair, n in calls.items() if pair[0] != pair[1] and not _in_world(*pair)}
    return Walked(
        files=files,
        lines=sum((Path(PACKAGE) / file).read_text().count("\n") for file in files),
        calls=sum(crossed.values()),
        changes_of_room=sum(n for (a, b), n in crossed.items() if Path(a).parent != Path(b).parent),
    )


def _in_world(*files: str) -> bool:
    return any(file.startswith("world/") for file in files)


def _stage(policy: str) -> Stage:
    clock = VirtualClock(NOW)
    read = read_policy(f"version: 1\n{policy}".encode(), "policy")
    catalog = App(Settings()).catalog
    world = World(catalog, [WorldPool.from_policy(n, p) for n, p in read.pools.items()], clock=clock)
    app = App(
        Settings(mode="act"),
        cluster=WorldCluster(world),
        pools=WorldPools(world),
        clock=clock,
        state=MemoryState(clock),
        outbox=MemoryOutbox(),
        policy=read,
        catalog=catalog,
    )
    app.world = world
    return Stage(app, world, clock)


def _of_world(frame: FrameType | None) -> bool:
    """True for a call that a world makes to answer one, but for what a flow has it call back."""
    while frame is not None and not frame.f_code.co_filename.startswith((WORLD, FLOWS)):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(WORLD)


@contextmanager
def _watched() -> Iterator[Counter[tuple[str, str]]]:
    """Calls by file of the caller and of the called, while this is open; going on with a generator is none."""
    calls: Counter[tuple[str, str]] = Counter()

    def enter(frame: FrameType, event: str, _: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or caller is None or code.co_name == "<module>" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_code[frame.f_lasti + 1] == BEGINS and not _of_world(caller):
            calls[caller.f_code.co_filename.removeprefix(PACKAGE), code.co_filename.removeprefix(PACKAGE)] += 1

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def main() -> int:
    """Print the table, with ``--names`` the files of one walk."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--names", nargs="?", const="plain purchase", choices=WALKS, help="print the files of this walk")
    words.add_argument("--json", action="store_true", help="print JSON")
    options = words.parse_args()
    found = {name: walked(name) for name in WALKS}
    if options.names:
        print("\n".join(found[options.names].files))
    elif options.json:
        print(json.dumps({name: walk.as_json() for name, walk in found.items()}, indent=1))
    else:
        console().print(_table(found))
    return 0


def _table(found: Mapping[str, Walked]) -> Sheet:
    headings = ("files", "lines", "calls from file to file", "changes of room")
    shown = Sheet(Column("walk", "name"), *(Column(heading, "figure") for heading in headings))
    for name, walk in found.items():
        shown.add(name, *(f"{figure:,}" for figure in walk.as_json().values()))
    return shown


if __name__ == "__main__":
    sys.exit(main())

"""Decisions compared with those of the commit that the rearranging of the house began on, to the byte.

Usage: python bench/same.py [--whole] [--only NAME..] [--keep FOLDER] [--write]
Compared by digest with ``bench/same.json``: the logs of replays of the shelf's traces (three, with ``--whole`` seven),
and what every sample of an event is answered by every function, with the messages that it sends and the records that it
leaves. ``--keep`` writes all of it into a folder, for ``diff``. ``--write`` makes the references anew. What the shelf
would give is left out where it is not there, and named. Exit code 1 where anything differs.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from subprocess import run
from typing import NamedTuple

from rich.progress import track

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.policy_file import read_policy
from pilotlight.doorway import RECEIVES
from pilotlight.settings import Settings, default_file
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

ROOT = Path(__file__).resolve().parents[1]
REFERENCES = ROOT / "bench" / "same.json"
TRACES = ROOT.parent / "shared" / "traces"
SAMPLES = {"ours": ROOT / "events" / "samples", "shelf": ROOT.parent / "shared" / "contracts" / "events"}
COMMAND = "from pilotlight.tools.cli.entry import run; run()"
NOW = datetime(2026, 11, 20, 9, 31, 30, tzinfo=UTC)


class Replay(NamedTuple):
    """One run of ``pilotlight replay`` at $30 an hour of waiting: its trace, and its further options."""

    trace: str
    options: tuple[str, ...] = ()
    always: bool = True


REPLAYS = {
    "philly_small_dev": Replay("philly_small_dev"),
    "dlrm_dev": Replay("dlrm_dev"),
    "openb_dev": Replay("openb_dev"),
    "philly_dev": Replay("philly_dev", always=False),
    "philly_short_dev": Replay("philly_short_dev", always=False),
    "spot": Replay("philly_small_dev", ("--capacity-type", "spot", "--notice-seconds", "120"), always=False),
    "standby": Replay("philly_small_dev", ("--standby-boot-seconds", "60"), always=False),
}
USUAL = ("--placement", "homes", "--scoring", "most-allocated", "--value-of-wait", "30")
"""Each pod runs on the node that is planned for it, and open nodes are packed."""


def main() -> int:
    """Run them, compare, print a line each; the exit code."""
    options = _options()
    tasks = dict(_tasks(options))
    found: dict[str, str] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        began = {name: pool.submit(task, options.keep) for name, task in tasks.items()}
        for name, task in track(began.items(), "same", disable=not sys.stderr.isatty()):
            found[name] = task.result()
    known = json.loads(REFERENCES.read_text()) if REFERENCES.is_file() else {}
    if options.write:
        REFERENCES.write_text(json.dumps(dict(sorted((known | found).items())), indent=1) + "\n")
        print(f"{len(found)} references in {REFERENCES.relative_to(ROOT)}")
        return 0
    differ = sorted(name for name, digest in found.items() if known.get(name) != digest)
    for name in differ:
        print(f"differs: {name}")
    print(f"{len(found) - len(differ)} the same, {len(differ)} differ, {len(known.keys() - found.keys())} not run")
    return 1 if differ else 0


def _options() -> argparse.Namespace:
    words = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    words.add_argument("--whole", action="store_true", help="all seven replays")
    words.add_argument("--only", nargs="*", default=[], help="names of replays, or samples")
    words.add_argument("--keep", type=Path, help="the folder to write logs and answers to")
    words.add_argument("--write", action="store_true", help="make the references anew")
    words.add_argument("--jobs", type=int, default=2, help="processes")
    return words.parse_args()


def _tasks(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[Path | None], str]]]:
    for name, replay in REPLAYS.items():
        if name in options.only or (not options.only and (options.whole or replay.always)):
            if (TRACES / f"{replay.trace}.csv.gz").is_file():
                yield f"replay {name}", partial(_replayed, name)
            else:
                print(f"left out: replay {name}; the shelf's traces are not here")
    if not options.only or "samples" in options.only:
        for source, folder in SAMPLES.items():
            for path in sorted(folder.rglob("*.json")):
                if "schema" not in path.name:
                    yield f"{source} {path.relative_to(folder).as_posix()}", partial(_answered, path)


def _replayed(name: str, keep: Path | None) -> str:
    """The digest of a replay's log."""
    replay = REPLAYS[name]
    log = (keep or ROOT / "build" / "same") / f"{name}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    trace = str(TRACES / f"{replay.trace}.csv.gz")
    words = ["replay", trace, *USUAL, *replay.options, "--log", str(log)]
    run([sys.executable, "-c", COMMAND, *words, "--json"], check=True, capture_output=True)
    return sha256(log.read_bytes()).hexdigest()


def _answered(path: Path, keep: Path | None) -> str:
    """The digest of a sample's answers by every function, each with the messages it sent and the records it left."""
    content = json.loads(path.read_bytes())
    whole = isinstance(content, dict) and content.keys() == {"headers", "body"}
    body, headers = (content["body"], content["headers"]) if whole else (content, {})
    found = sha256()
    for function in RECEIVES:
        clock = VirtualClock(NOW)
        policy = read_policy(default_file("examples/policy.yaml").read_bytes(), "policy")
        types = App(Settings()).catalog
        world = World(types, [WorldPool.from_policy(name, pool) for name, pool in policy.pools.items()], clock=clock)
        state, outbox = MemoryState(clock), MemoryOutbox()
        app = App(
            Settings(mode="act"),
            cluster=WorldCluster(world),
            pools=WorldPools(world),
            clock=clock,
            state=state,
            outbox=outbox,
            policy=policy,
        )
        answer = app.receive(function, json.dumps(body).encode(), headers)
        sent = [(message.topic, bytes(message.data).decode()) for message in outbox.sent]
        left = [(key, stored.value.decode()) for key, stored in state.scan("").items]
        text = json.dumps([answer.status, answer.body, sent, left], indent=1, default=str)
        if keep:
            target = keep / "samples" / path.parent.name / f"{path.stem}.{function}.json"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        found.update(text.encode())
    return found.hexdigest()


if __name__ == "__main__":
    sys.exit(main())

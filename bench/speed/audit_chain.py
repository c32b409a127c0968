"""Cost of the audit chain: medians of an append and of verifying a million (``python bench/speed/audit_chain.py``).

An append is what filing a decision does beside writing its record: digest, link, and the head's compare-and-set, in
memory and in SQLite. The export is a real one in shape: each record that of a purchase of one node in the world; it is
written to a temporary folder and read again line by line, as ``pilotlight audit verify FILE`` does.
"""

import argparse
import time
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.facts.decisions import Chain, Record
from pilotlight.facts.money.bill import NodeCost
from pilotlight.flow.billing import node_costs
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.decision_records import DECISION
from pilotlight.tools.lint.audit_proof import line_of, verify

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="how many are verified")
    parser.add_argument("--times", type=int, default=3, help="how often; medians are printed")
    asked = parser.parse_args()
    record = purchase()
    size = len(DECISION.format.write(record))
    with TemporaryDirectory() as folder:
        for name, state in (
            ("memory", MemoryState(SystemClock())),
            ("sqlite", SqliteState(Path(folder) / "state.db", SystemClock())),
        ):
            print(f"append ({name}): {1000 * median(appends(state, record)):.3f} ms CPU, median of 2,000")
            print(f"append of a cost ({name}): {1000 * median(costs(state)):.3f} ms CPU, median of 2,000")
        file = Path(folder) / "audit.jsonl"
        export(file, record, asked.records)
        cpu, wall = zip(*(verified(file, asked.records) for _ in range(asked.times)), strict=True)
        print(
            f"verify {asked.records:,} records of {size:,} bytes: {median(cpu):.1f} s CPU, {median(wall):.1f} s, "
            f"medians of {asked.times}"
        )


def purchase() -> Record:
    """The record of a purchase of one node for one pod, as it is filed."""
    from pilotlight.settings import Settings
    from pilotlight.tools.serve import pods_to_world
    from pilotlight.wiring import App

    sample = (ROOT / "events" / "samples" / "kubernetes" / "pod_unschedulable.json").read_bytes()
    app = App(Settings(mode="act", outbox="memory:", state="memory:"))
    pods_to_world.create(app, sample, {})
    app.receive("pod_pending", sample, {})
    return ledger.filed_records(app.state, app.settings.cluster_name)[-1]


def appends(state: State, record: Record, times: int = 2000) -> list[float]:
    """CPU seconds of each append."""
    out: list[float] = []
    for n in range(times):
        one = msgspec.structs.replace(record, id=f"{n:014d}-bench")
        began = time.process_time()
        digest = sha256(DECISION.format.write(one)).hexdigest()
        ledger.chain(state, one.cluster, "decision", one.id, one.at, digest)
        out.append(time.process_time() - began)
    return out


def costs(state: State, times: int = 2000) -> list[float]:
    """CPU seconds of filing each node's cost, with its record."""
    now, out = state.now(), list[float]()
    for n in range(times):
        one = NodeCost(
            decision=f"{n:014d}-bench",
            instance=f"i-{n}",
            node=f"gpu-{n}",
            pool="gpu",
            instance_type="a100",
            capacity_type="spot",
            since=now,
            ended_at=now,
            paid_until=now,
            usd=Decimal("1.234567"),
        )
        began = time.process_time()
        node_costs.put(state, "local", f"2026-11-20/i-{n}/0", one, now)
        out.append(time.process_time() - began)
    return out


def export(file: Path, record: Record, records: int) -> None:
    """A chain of so many, as JSON Lines."""
    head = Chain()
    with file.open("wb") as opened:
        for n in range(records):
            id = f"{n:014d}-bench"
            written = DECISION.format.write(msgspec.structs.replace(record, id=id))
            link = head.next_link("decision", id, record.at, sha256(written).hexdigest())
            head = Chain(links=(link,))
            opened.write(line_of(link, written) + b"\n")


def verified(file: Path, records: int) -> tuple[float, float]:
    """CPU and wall seconds of verifying it whole."""
    cpu, wall = time.process_time(), time.perf_counter()
    with file.open("rb") as opened:
        found = verify(line.rstrip(b"\n") for line in opened)
    assert (found.last, found.tampered) == (records, None), found
    return time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    main()

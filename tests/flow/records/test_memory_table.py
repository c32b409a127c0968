"""The memory after refusals, purchases and releases in many states, as a table has it."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from stage import START
from state_tables import differing, line, minutes, states

from pilotlight.errors import BadRequest, Denied, Forbidden, NoCapacity, QuotaExceeded
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.decisions import Buy
from pilotlight.facts.memory import Backoff, Flaps, Memory, Tally
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.records import memory_updates as updates

HERE = Path(__file__).parent
KINDS = {
    "short": NoCapacity("none is left"),
    "quota": QuotaExceeded("at its limit"),
    "forbidden": Forbidden("no right"),
    "wrong": BadRequest("no such zone"),
    "other": Denied("no"),
}
CHOICES: dict[str, Any] = {
    "kind": (*KINDS,),
    "zones": (1, 2),
    "known": (True, False),
    "tries": (1, 2, 6, 10, 11, 12, 40),
    "until": (1, 0, -29, -29.99, -30, -31),
    "short since": (-9, None),
    "late": ("no-capacity", "quota", "other"),
    "zone": ("", "z0", "z1"),
    "pool": ("p", "q"),
    "released": (None, 0, -4.99, -5, -5.01),
    "times": ((), (-1,), (-30, -59.99), (-30, -60), (-1, -2, -61)),
    "stretch": (1, 4),
    "class": ("batch", ""),
}


MADE = START - timedelta(seconds=10)


def _shown(memory: Memory) -> str:
    rests = [
        f"{b.offering} to {minutes(b.until, START)} {b.tries} short {minutes(b.short_since, START)} {b.why}"
        for b in memory.backoffs
    ]
    flaps = [
        f"{name} {minutes(f.released_at, START)} {f.idle_s:g} {[minutes(t, START) for t in f.times]} {f.stretch}"
        for name, f in memory.flaps.items()
    ]
    floors = [f"{name} {minutes(at, START)}" for name, at in (*memory.floors.items(), *memory.last_buy.items())]
    return f"{rests} {flaps} {floors} {memory.pool_class} {memory.sizes}"


def _memory(state: dict[str, Any]) -> Memory:
    short = state["short since"]
    known = Backoff(
        offering="p/x/z0/spot",
        until=START + timedelta(minutes=state["until"]),
        why="before",
        tries=state["tries"],
        short_since=None if short is None else START + timedelta(minutes=short),
    )
    other = Backoff(offering="o", until=START, why="another's")
    flaps = {}
    if state["released"] is not None:
        at = START + timedelta(minutes=state["released"])
        times = tuple(START + timedelta(minutes=each) for each in state["times"])
        flaps = {"p": Flaps(released_at=at, idle_s=300, times=times, stretch=state["stretch"])}
    return Memory(backoffs=(known, other) if state["known"] else (other,), flaps=flaps)


def test_what_is_remembered_is_that_of_the_table() -> None:
    """How long an offering rests after refusals in a row, here and in a zone; whether a pool flaps; what was done."""
    found = []
    for state in states(320, CHOICES):
        memory, no = _memory(state), KINDS[state["kind"]]
        sold = [
            Offering(
                pool="p", instance_type="x", capacity_type="spot", gpu_model="T4", gpus=1, usd_per_hour=Decimal(1),
                zone=f"z{n}",
            )
            for n in range(state["zones"])
        ]  # fmt: skip
        several = updates.several_zones(sold, "p")
        refused = updates.note_refusal(memory, sold[0].name, no, START, several=several)
        late = updates.note_late_refusal(memory, sold, state["pool"], state["zone"], state["late"], "late", START)
        buy = Buy(
            pool="p", offering="p/x", zone="", count=1, usd_per_hour=Decimal(1), boot_s=1, demands=(), shapes=(),
            why="", workload_class=state["class"],
        )  # fmt: skip
        bought, trips = updates.note_flap(updates.note_purchase(memory, buy, START), "p", START)
        gone = updates.note_release(memory, "p", 120, START)
        kept = updates.note_floor(
            updates.note_size(updates.never_ready(memory, "o", "never", START), "p", 3), "p", START
        )
        answer = " | ".join(map(_shown, (refused, late, bought, gone, kept)))
        found.append(line(CHOICES, state, f"{several} {trips} {answer}"))
    assert differing(HERE / "memory.txt", found) == []


def test_what_deciding_and_booting_took_is_counted_of_the_purchases_own_pods() -> None:
    """From a pod's creation to the look, to the call, to its node, to its start; of nobody else's pod or node."""
    made = shape(gpu=GpuRequest(count=1))
    pods = [
        PodDemand(uid=f"u{n}", namespace="ml", name="p", shape=made, created_at=START - timedelta(seconds=each))
        for n, each in enumerate((3, 40, 700))
    ]
    waits = updates.count_waits(Tally(), pods, ("u0", "u1"), START, START + timedelta(seconds=1.5))
    assert waits == Tally().count_duration("detect", 3).count_duration("detect", 40).count_duration("decide", 1.5)
    assert updates.count_waits(Tally(), pods, (), START, None) == Tally()
    entry = InFlight(
        decision="d", offering="o", pool="p", count=1, requested_at=START, ready_by=START, demands=("u0", "u1")
    )

    def on(pool: str, since: float, uids: tuple[str, ...], started: float | None, **more: Any) -> Node:
        began = None if started is None else START + timedelta(seconds=started)
        bound = tuple(
            BoundPod(uid=uid, namespace="ml", name=uid, gpu=GpuRequest(count=1), created_at=MADE, started_at=began)
            for uid in uids
        )
        at = START + timedelta(seconds=since)
        return Node(
            name="n", pool=pool, instance_type="x", capacity_type="spot", created_at=at, ready=True, pods=bound, **more
        )

    ready = {"ready_since": START + timedelta(seconds=90)}
    nodes = [
        on("p", 60, ("u0",), 95, **ready),
        on("p", -5, ("u1", "u9"), 20),
        on("p", -6, ("u1",), 20),
        on("q", 60, ("u0",), 95),
        on("p", 60, ("u9",), 95),
        on("p", 70, ("u1",), None),
    ]
    found = updates.count_arrival(Memory(), entry, nodes)
    expected = Tally().count_duration("boot", 90).count_duration("bind", 5)
    expected = expected.count_bound(105)
    expected = expected.count_duration("boot", -5).count_duration("bind", 25).count_duration("boot", 70).count_bound(30)
    assert found.tally == expected
    assert found.first_work.boots == {"p": (90.0,)}, "only of nodes that say when they became Ready"

"""Zones whose spot capacity comes and goes as it was recorded."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_cloud import POOLS, SPOT, pod, world

import judge_zones
from pilotlight.errors import NoCapacity
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.world.simulation import World

TICK_S = 1000.0


def zone(name: str, *values: int, nodes: int = 1) -> ZoneHistory:
    """A zone with a value a tick of 1,000 s."""
    return ZoneHistory(zone=name, gap_s=TICK_S, nodes=nodes, runs=tuple((value, 1) for value in values))


def at(here: World, history: ZoneHistory, tick: int) -> float:
    """The first moment of a run at which a tick of its only history has just begun."""
    return float((tick * TICK_S - here.fleet.zones.offset_s) % history.span_s)


def test_a_launch_in_a_zone_that_is_down_is_refused_and_another_zone_has_room() -> None:
    """Where the recording says 0 nothing of any type is to be had, elsewhere it is, and on-demand always is."""
    here = world((*SPOT, POOLS[0].__class__(name="sure", instance_type="one")), zones=[zone("a", 0), zone("b", 1)])
    with pytest.raises(NoCapacity, match="out of stock in a"):
        here.launch("one", zone="a")
    assert here.nodes[here.launch("one", zone="b")[0]].zone == "b"
    assert here.launch("sure", zone="a")


def test_a_ready_node_gets_its_notice_and_goes_though_its_zone_is_back() -> None:
    """When its zone goes down a ready node is told, and taken 120 s later; one that boots goes at once."""
    history = ZoneHistory(zone="a", gap_s=50.0, runs=((1, 100), (0, 1), (1, 3)))
    here = world(SPOT, zones=[history])
    falls_s = (100 * 50.0 - here.fleet.zones.offset_s) % history.span_s
    here.advance(falls_s - 150 if falls_s > 150 else falls_s + history.span_s - 150)
    falls_s = here.now_s + 150
    (old,) = here.launch("one", zone="a")
    here.advance(falls_s - 1)
    (young,) = here.launch("one", zone="a")
    told: list[tuple[str, str, float]] = []
    here.on_change.append(lambda change: told.append((change.what, change.subject, round(change.t - falls_s, 3))))
    here.advance(falls_s + 130)
    assert [one for one in told if one[0] in ("notice", "lost")] == [
        ("notice", old, 0.0),
        ("lost", young, 0.0),
        ("lost", old, 120.0),
    ]


def test_where_there_is_room_for_fewer_the_newest_go() -> None:
    """A recording of many nodes caps each type: of three the newest one goes when there is room for two."""
    history = zone("a", 3, 2, nodes=16)
    here = world(SPOT, zones=[history])
    here.advance(at(here, history, 0))
    nodes = [*here.launch("one", 3, zone="a"), *here.launch("four", 1, zone="a")]
    with pytest.raises(NoCapacity):
        here.launch("one", zone="a")
    here.advance(here.now_s + TICK_S + 60)
    assert [here.nodes[node].doomed_s is not None for node in nodes] == [False, False, True, False]


Histories = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=6).filter(
            lambda runs: any(ticks for _, ticks in runs)
        ),
        st.sampled_from([1, 16]),
        st.sampled_from([90.0, 195.0, 601.0]),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=40, deadline=None)
@given(
    Histories,
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["one", "four"]), st.integers(1, 900))),
    st.integers(0, 99),
)
def test_a_stranger_finds_every_launch_and_every_loss_in_the_recordings(
    histories: list[tuple[list[tuple[int, int]], int, float]], asked: list[tuple[int, str, int]], seed: int
) -> None:
    """Whatever is asked for when, each launch had room and each node went as code of its own reads the files."""
    zones = [
        ZoneHistory(zone=f"z{n}", gap_s=gap_s, nodes=nodes, runs=tuple(runs))
        for n, (runs, nodes, gap_s) in enumerate(histories)
    ]
    records: list[dict[str, Any]] = []
    here = world(SPOT, zones=zones, seed=seed, faults={"reclaim": False}, log=records.append)
    for number, (which, pool, after_s) in enumerate(asked):
        here.advance(here.now_s + after_s)
        here.submit(pod(f"p{number}", on=pool), 300.0)
        try:
            here.launch(pool, zone=f"z{which % len(zones)}")
        except NoCapacity:
            continue
    here.advance(here.now_s + 4000)
    here.shut_down()
    strangers = [judge_zones.Zone.of(z.zone, z.gap_s, z.runs, z.nodes) for z in zones]
    assert judge_zones.wrong(records, strangers, seed) == []

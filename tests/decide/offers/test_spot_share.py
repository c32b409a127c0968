"""The share of a team's and a class's work that may be on spot, where nodes are bought."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fleet import T4, bought, gang, in_flight, node, offering, plan, pod, pods, policy

from pilotlight.decide.offers.spot_share import spot_shares
from pilotlight.facts.capacity import BoundPod, ClusterView, Node
from pilotlight.facts.decisions import Plan
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import ClassPolicy, Policy, TeamPolicy
from pilotlight.facts.workload import GpuRequest
from pilotlight.tools.advice.spot_table_rows import share_rows

SPOT = offering("spot", "T4", 1, "0.3", capacity_type="spot", interruptions_per_hour=0.05)
SAVES: dict[str, Any] = {"checkpoint_s": 600}


def rules(share: str | None = None, teams: dict[str, str] | None = None, **fields: Any) -> Policy:
    """Batch may run on either, so much of it on spot."""
    most = None if share is None else Decimal(share)
    either = {"capacity_types": ("on-demand", "spot"), "gpu_models": "any", "max_spot_share": most, **fields}
    named = {name: TeamPolicy(max_spot_share=Decimal(one)) for name, one in (teams or {}).items()}
    return policy([T4, SPOT], classes={"batch": ClassPolicy(**either)}, teams=named)


def made(wanted: Any, of: Policy, nodes: Any = (), **options: Any) -> Plan:
    """A plan with a T4 on demand and a cheaper one on spot."""
    return plan(wanted, nodes, offerings=[T4, SPOT], rules=of, **options)


def at_work(name: str, on: Any, team: str = "") -> Node:
    """A node with a pod of batch on it."""
    running = BoundPod(uid=name, namespace="ml", name=name, gpu=GpuRequest(count=1), workload_class="batch", team=team)
    return node(name, on, used=1, pods=(running,))


@pytest.mark.parametrize(
    ("of", "count", "spot"),
    [
        (rules(), 10, 10),
        (rules("1"), 10, 10),
        (rules("0.5"), 10, 5),
        (rules("0.5"), 1, 0),
        (rules("0"), 10, 0),
        (rules("0.75", {"research": "0.2"}), 10, 2),
        (rules(None, {"research": "0.2"}), 10, 2),
        (rules(None, {"other": "0"}), 10, 10),
        (rules("0.5", capacity_types=("spot",), fallback="allow"), 10, 5),
    ],
    ids=[
        "without a share all of it",
        "a share of one is no limit",
        "half of ten",
        "half of one pod is none",
        "nothing",
        "the team's is the tighter one",
        "the team's alone",
        "another team's binds nobody else",
        "the rest falls back",
    ],
)
def test_spot_is_bought_up_to_the_share_and_the_rest_on_demand(of: Policy, count: int, spot: int) -> None:
    """Of the GPUs that the pods ask for."""
    found = bought(made(pods(count, team="research", **SAVES), of))
    assert (found.get("spot", 0), found.get("t4", 0)) == (spot, count - spot)


def test_what_runs_and_what_is_on_its_way_counts() -> None:
    """Two run on spot, one is on its way there, one runs on demand: with six that wait half of ten is two more."""
    nodes = [at_work("a", SPOT), at_work("b", SPOT), at_work("c", T4)]
    first = pods(6, **SAVES)
    flying = Memory(in_flight=(in_flight(SPOT, first[:1]),))
    found = bought(made(first, rules("0.5"), nodes, memory=flying, booting={"spot": 1}))
    assert found == {"spot": 1, "t4": 4}


def test_a_gang_is_on_spot_whole_or_not_at_all() -> None:
    """Three of its four would be allowed: all four are bought on demand; of four beside four others all are on spot."""
    four = gang("g", 4, gpus=1, **SAVES)
    assert bought(made(four, rules("0.75"))) == {"t4": 4}
    running = [at_work(f"n{n}", T4) for n in range(4)]
    assert bought(made(four, rules("0.5"), running)) == {"spot": 4}


def test_without_on_demand_the_rest_waits_and_says_so() -> None:
    """By the code of the rule and its figures."""
    only = made([pod("p", team="research", **SAVES)], rules(None, {"research": "0.5"}, capacity_types=("spot",)))
    [group] = only.pods
    assert (group.verdict, group.code) == ("waiting", "spot-share")
    assert (
        "0 of the 1 GPUs of team research are on spot, at most 50% may be (teams.research.max_spot_share)" in group.why
    )


def test_the_plan_names_the_share_where_on_demand_is_bought() -> None:
    """Spot is among what was passed over, with its price."""
    [group] = made([pod("p", **SAVES)], rules("0.5")).pods
    [passed] = [r for r in group.rejected if r.code == "spot-share"]
    assert (group.where, passed.offering, passed.usd_per_useful_hour is not None) == (T4.name, SPOT.name, True)


def test_a_share_is_looked_up_with_what_is_used() -> None:
    """As ``pilotlight spot`` prints it."""
    view = ClusterView(
        nodes=(at_work("a", SPOT, "research"), at_work("b", T4, "research")), pending=pods(2, team="research")
    )
    [row] = share_rows(spot_shares(rules(None, {"research": "0.5"}), view))
    assert (row.kind, row.name, row.gpus, row.spot_gpus) == ("team", "research", 4, 1)


@settings(max_examples=60, deadline=None)
@given(
    share=st.integers(0, 100),
    waits=st.lists(st.tuples(st.integers(1, 3), st.sampled_from(("a", "b"))), max_size=5),
    spot=st.integers(0, 4),
    sure=st.integers(0, 4),
)
def test_no_purchase_takes_spot_over_its_share(share: int, waits: list[tuple[int, str]], spot: int, sure: int) -> None:
    """Whatever waits, runs and is gathered in gangs: what is bought on spot stays within the share, or is nothing."""
    of = rules(f"{share / 100}", {"a": "0.5"})
    nodes = [at_work(f"s{n}", SPOT) for n in range(spot)] + [at_work(f"d{n}", T4) for n in range(sure)]
    wanted = [
        one
        for n, (size, team) in enumerate(waits)
        for one in (
            gang(f"g{n}", size, gpus=1, team=team, **SAVES) if size > 1 else (pod(f"p{n}", team=team, **SAVES),)
        )
    ]
    found = bought(made(wanted, of, nodes))
    on_spot, asked = found.get("spot", 0), len(wanted) + spot + sure
    assert not on_spot or spot + on_spot <= Decimal(share) / 100 * asked
    assert sum(found.values()) == len(wanted)

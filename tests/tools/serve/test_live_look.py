"""What the live page is told from: looks that are shared, decisions however old, and faults that are said."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from live_crowd import crowd
from live_site import Site, busy
from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.decisions import NodeVerdict, Plan, Record
from pilotlight.facts.money.money_policy import Budget
from pilotlight.flow.records import ledger
from pilotlight.settings import Settings
from pilotlight.tools.serve import own_pages
from pilotlight.tools.serve.live.live_decision import decision_of
from pilotlight.tools.serve.live.live_look import DECISIONS, Looks
from pilotlight.tools.serve.live.live_stream import _Stream

HOUR = timedelta(hours=1)


def filed(on: Stage, *hours_ago: float) -> list[str]:
    """Decisions so long ago; their ids."""
    now = on.deps.state.now()
    ids = []
    for ago in hours_ago:
        at = now - ago * HOUR
        ids.append(ledger.new_id(at, str(ago)))
        record = Record(
            id=ids[-1], cluster="c", flow="reconcile", trigger="tick", at=at, status="closed", plan=Plan(), steps=()
        )
        ledger.close(on.deps.state, record)
    return ids


def looks(on: Stage, **deps: Any) -> Looks:
    """Looks at a stage, of which each is due at once."""
    made = Looks(Site(replace(on.deps, **deps)), ["c"])  # type: ignore[arg-type]
    made.every_s = 0.0
    return made


def test_decisions_of_days_ago_are_shown_newest_first() -> None:
    """A cluster where nothing happened for days shows what it did before; what is over a week old is left out."""
    on = Stage()
    ids = filed(on, 1, 30, 100, 400)
    assert [one.id for one in looks(on).newest().decisions] == ids[:3]


def test_the_forecast_of_the_month_is_that_of_a_budget_for_all_of_it() -> None:
    """Two figures for one end of the month would contradict each other: both go by the same last whole days."""
    money = Looks(crowd(), ["c"]).newest().money  # type: ignore[arg-type]
    [of_all] = [one for one in money.budgets if one.budget == "all"]
    assert (money.month, round(money.likely, 6)) == (of_all.spent, round(of_all.likely, 6))


def test_a_budget_of_dollars_an_hour_is_told_of_beside_those_with_a_period() -> None:
    """A page that lists none of them must not say that there is no budget."""
    on = Stage()
    rate = Budget(name="now", usd=Decimal(5), period="hour")
    ruled = msgspec.structs.replace(on.deps.policy, budgets=(rate,))
    money = looks(on, policy=ruled).newest().money
    assert (money.budgets, money.at_once) == ((), 1)


@pytest.mark.parametrize(("api", "pretend"), [("", True), ("in-cluster", False)])
def test_a_pretend_world_is_named(api: str, pretend: bool) -> None:
    """Its dollars are nobody's: the page says so beside the cluster's name."""
    site = Site(Stage().deps)
    site.settings = Settings(api=api)
    assert Looks(site, ["c"]).newest().pretend is pretend  # type: ignore[arg-type]


def test_of_many_decisions_the_newest_are_shown_and_new_ones_come() -> None:
    """Forty of fifty; of those that come later none is missed."""
    on = Stage()
    ids = filed(on, *(n / 60 for n in range(50)))
    seen = looks(on)
    assert [one.id for one in seen.newest().decisions] == ids[:DECISIONS]
    on.wait(600)
    new = filed(on, 0.1)
    seen._next = 0.0
    assert [one.id for one in seen.newest().decisions][:2] == [*new, ids[0]]


def test_a_pod_that_boots_is_told_as_one_that_waits_since_it_was_made() -> None:
    """Of the waits of the day it is none until it is bound; then its own wait is the figure."""
    on = Stage()
    pod = on.submit("slow", run_s=90_000)
    on.event(pod)
    seen = looks(on).newest()
    assert (seen.waited, seen.wait_p95_s, seen.waits_since) == (0, None, pod.created_at)
    on.minutes(9)
    seen = looks(on).newest()
    assert (seen.waited, seen.waits_since) == (1, None)
    [bound] = [one for node in on.deps.cluster.observe().nodes for one in node.pods if one.uid == pod.uid]
    assert bound.started_at is not None
    waited_s = (bound.started_at - pod.created_at).total_seconds()
    assert seen.wait_p95_s is not None
    assert waited_s <= seen.wait_p95_s <= 1.1 * waited_s + 1


def test_all_who_watch_share_a_look() -> None:
    """The cluster is read once, however many ask within the time between two looks."""
    site = busy()
    read = list[int]()

    class Counted:
        def observe(self) -> Any:
            read.append(1)
            return site.deps.cluster.observe()

        def __getattr__(self, name: str) -> Any:
            return getattr(site.deps.cluster, name)

    counted = Looks(Site(replace(site.deps, cluster=Counted())), ["c"])  # type: ignore[arg-type]
    assert counted.newest() is counted.newest()
    assert len(read) == 1


def test_a_cluster_that_does_not_answer_is_said_beside_what_is_known() -> None:
    """Nodes are not known; budgets and decisions are."""

    class Gone:
        def __getattr__(self, name: str) -> Any:
            raise Unavailable("the API server does not answer")

    seen = Looks(Site(replace(busy().deps, cluster=Gone())), ["c"]).newest()  # type: ignore[arg-type]
    assert (seen.unseen, seen.nodes) == ("the API server does not answer", {})
    assert seen.decisions
    assert [line.budget for line in seen.money.budgets] == ["all", "research"]
    assert seen.todo[0].command == "pilotlight doctor"


def test_dollars_without_a_price_are_told_to_be_a_least() -> None:
    """Of what is lit now, as status has it, and of a decision before and after: the one released is left out then."""
    on = Stage()
    on.world.launch("one")
    on.wait(600)
    seen = looks(on, offerings=()).newest()
    assert (str(seen.usd_per_hour), seen.unpriced) == ("0", 1)
    assert {one.value for one in own_pages._looked(seen) if one.family == "pilotlight_nodes_unpriced"} == {1}
    kept, gone = (
        NodeVerdict(node=verdict, pool="one", instance="", verdict=verdict, why="", usd_per_hour=None)
        for verdict in ("keep", "release")
    )
    plan = Plan(nodes=(kept, gone))
    record = Record(
        id="d", cluster="c", flow="reconcile", trigger="t", at=seen.at, status="closed", plan=plan, steps=()
    )
    opened = decision_of(record)
    assert (opened.unpriced_before, opened.unpriced_after) == (2, 1)


FAULTS = {
    "a store that does not answer": (Unavailable("the store does not answer"), "the store does not answer"),
    "an error that nobody thought of": (KeyError("noticed"), "an unexpected KeyError, which the log explains"),
}


@pytest.mark.parametrize(("fault", "why"), FAULTS.values(), ids=FAULTS)
def test_a_look_that_fails_is_said_and_the_stream_goes_on(
    fault: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is old from then on; with the next look that succeeds comes what is new since."""
    from threading import Event

    seen, faults = looks(Stage()), [False, True, False]
    honest = seen.newest

    def newest() -> Any:
        if faults.pop(0):
            raise fault
        return honest()

    monkeypatch.setattr(seen, "newest", newest)
    stream = _Stream(seen, Event(), None)
    stream._left = 3
    events = [event.decode() for event in stream]
    assert [event.split("\n")[0] for event in events[1:]] == ["event: all", "event: blind", ": nothing new"]
    assert json.loads(events[2].split("data: ")[1]) == {"why": why}


def test_a_record_that_cannot_be_told_hides_no_other() -> None:
    """Of three decisions one is no JSON and one of a schema to come: both are shown as that, beside the third."""
    on = Stage()
    ids = filed(on, 3, 2, 1)
    on.deps.state.put(f"decision/c/{ids[0]}", b"\x00 no record")
    on.deps.state.put(f"decision/c/{ids[1]}", b'{"schema": 99}')
    shown = looks(on).newest().decisions
    assert [(one.id, one.flow) for one in shown] == [
        (ids[2], "reconcile"),
        (ids[1], "unreadable"),
        (ids[0], "unreadable"),
    ]
    assert f"decision/c/{ids[0]}" in shown[2].why

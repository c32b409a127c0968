"""Pilotlight's own figures: what the state knows of one cluster, as numbers."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from stage import START, Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import NoCapacity, Unavailable
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.alerts.figures import FAMILIES
from pilotlight.facts.limits.checks import Token
from pilotlight.facts.messages import Alert, Tick
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import PoolPolicy
from pilotlight.facts.workload import Toleration
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.figures import of_alerts, of_cluster
from pilotlight.flow.records import brake_records
from pilotlight.ports.state import Stored
from pilotlight.state_schema.alert_records import PROOF, WAITING
from pilotlight.units import HOUR, clock_seconds


class Gone(MemoryState):
    """A store that does not answer."""

    def get(self, key: str) -> Stored | None:
        """Nothing."""
        raise Unavailable("the store does not answer")


def lit() -> Stage:
    """A node of $1 an hour that has run a job of team nlp for two hours, under a budget of $40 a day."""
    on = Stage(budgets=(Budget(name="day", usd=Decimal(40), period="day", hard=False),))
    on.event(on.submit("a", run_s=6 * HOUR, team="nlp"))
    for _ in range(12):
        on.minutes(10)
        billing(on.deps, Tick(cluster="c", what="billing"))
    return on


def figures(on: Stage) -> dict[tuple[str, ...], float]:
    """Each sample by its family and labels."""
    found = list(of_cluster(on.deps))
    keys = [(sample.family, *sample.labels) for sample in found]
    assert len(set(keys)) == len(keys), "a page has each sample once"
    return {(sample.family.removeprefix("pilotlight_"), *sample.labels): sample.value for sample in found}


def test_a_budget_is_told_in_dollars() -> None:
    """Limit, what is spent and held, and what purchases may still take, which add up."""
    found = figures(lit())
    assert found["budget_limit_usd", "c", "day"] == 40
    assert found["budget_spent_usd", "c", "day"] == pytest.approx(2, abs=0.05)
    assert found["budget_held_usd", "c", "day"] >= found["budget_spent_usd", "c", "day"]
    assert found["budget_left_usd", "c", "day"] == pytest.approx(40 - found["budget_held_usd", "c", "day"])
    assert found["budget_forecast_usd", "c", "day"] >= found["budget_spent_usd", "c", "day"]


def test_what_was_metered_today_adds_up_to_what_is_spent() -> None:
    """The lines of teams, idle and shared time are the day's dollars, whoever they are for."""
    found = figures(lit())
    lines = {key: usd for key, usd in found.items() if key[0] == "metered_today_usd"}
    assert ("metered_today_usd", "c", "one", "nlp") in lines
    assert sum(lines.values()) == pytest.approx(found["budget_spent_usd", "c", "day"])


def test_a_pause_is_a_figure_while_it_lasts() -> None:
    """What a person paused is 1 by its pool, and gone when it is resumed."""
    on = lit()
    brake_records.pause(on.deps.state, "c", "", "why", START)
    brake_records.pause(on.deps.state, "c", "one", "why", START)
    assert [key for key in figures(on) if key[0] == "paused"] == [("paused", "c", "*"), ("paused", "c", "one")]
    brake_records.resume(on.deps.state, "c", "")
    assert [key for key in figures(on) if key[0] == "paused"] == [("paused", "c", "one")]


def test_what_is_under_way_is_counted() -> None:
    """A purchase is in flight until its node joins, and holds its dollars until it has stopped."""
    on = Stage(budgets=(Budget(name="day", usd=Decimal(40), period="day", hard=False),))
    assert figures(on)["purchases_in_flight", "c"] == 0
    on.event(on.submit("a"))
    found = figures(on)
    assert (found["purchases_in_flight", "c"], found["holds_open", "c"]) == (1, 1)
    on.minutes(10)
    found = figures(on)
    assert (found["purchases_in_flight", "c"], found["holds_open", "c"], found["decisions_open", "c"]) == (0, 1, 0)


def test_silence_begins_with_the_first_tick_that_fails() -> None:
    """Seconds since cluster or cloud stopped answering; 0 as soon as one tick works."""
    on = lit()
    assert figures(on)["silent_seconds", "c"] == 0
    on.fail("observe", Unavailable("gone"))
    with pytest.raises(Unavailable):
        on.tick()
    on.wait(300)
    assert figures(on)["silent_seconds", "c"] == pytest.approx(300)
    on.tick()
    assert figures(on)["silent_seconds", "c"] == 0


def test_a_wait_is_counted_in_its_parts() -> None:
    """Of the pod that a node was bought for: until the look, until the node, until its start: together all of it."""
    on = Stage()
    on.event(on.submit("a", run_s=6 * HOUR))
    on.minutes(10)
    found = {(s.family, *s.labels): s for s in of_cluster(on.deps)}
    parts = [found["pilotlight_wait_seconds", "c", phase] for phase in ("detect", "decide", "boot", "bind")]
    assert [sum(part.counts) for part in parts] == [1, 1, 1, 1]
    [pod] = [pod for node in on.deps.cluster.observe().nodes for pod in node.gpu_pods]
    assert pod.started_at is not None
    assert parts[0].value + parts[2].value + parts[3].value == pytest.approx((pod.started_at - START).total_seconds())
    assert parts[2].value > 60
    assert found["pilotlight_calls", "c", "grow", "done"].value == 1
    assert sum(found["pilotlight_cycle_seconds", "c"].counts) >= 1


def test_refusals_are_counted_by_their_kind() -> None:
    """A cloud without capacity is told by the name of its error; sums only rise."""
    on = Stage()
    on.fail("grow", NoCapacity("none left"))
    on.event(on.submit("a"))
    found = figures(on)
    assert (found["refusals", "c", "NoCapacity"], found["calls", "c", "grow", "denied"]) == (1, 1)
    on.minutes(10)
    assert figures(on)["refusals", "c", "NoCapacity"] >= 1


def test_pods_that_take_homes_are_counted_once_each() -> None:
    """A pod that tolerates everything is told once and counted once, however many looks see it wait."""
    pools = {"eight": PoolPolicy(instance_type="eight", max=20, taints=(BIRTH_TAINT,))}
    on = Stage(placement="homes", pools=pools, on_cloud={})
    on.event(on.submit("a", tolerations=(Toleration(operator="Exists"),)))
    on.minutes(2)
    assert figures(on)["pods_taking_homes", "c"] == 1
    [told] = [alert for alert in on.alerts if alert.kind == "finding-takes-homes"]
    assert told.what == "ml/a may take the room of others"


def test_the_end_of_a_token_is_told() -> None:
    """When the credential for the API server ends, as it says itself; nothing where there is none."""
    on = lit()
    assert ("credential_ends_timestamp_seconds", "c") not in figures(on)
    ends = START + timedelta(days=3)
    on.deps = replace(on.deps, credential=lambda: Token(subject="s", ends=ends))
    assert figures(on)["credential_ends_timestamp_seconds", "c"] == clock_seconds(ends)


def test_alerts_are_counted_by_their_channel() -> None:
    """What waits, and what was given up, of every cluster."""
    state = MemoryState(Stage().world.clock)
    alert = Alert(cluster="c", kind="k", severity="warning", fingerprint="f", what="w", why="y")
    for n in range(3):
        WAITING.put(state, f"c/ops/{n}", Telling(channel="ops", alert=alert, status="waits", since=START, at=START))
    PROOF.put(state, "c/chat/0", Telling(channel="chat", alert=alert, status="gave up", since=START, at=START))
    PROOF.put(state, "c/chat/1", Telling(channel="chat", alert=alert, status="told", since=START, at=START))
    assert {(s.family, *s.labels): s.value for s in of_alerts(state)} == {
        ("pilotlight_alerts_waiting", "ops"): 3,
        ("pilotlight_alerts_given_up", "chat"): 1,
    }


def test_a_store_that_is_down_is_said_to_be() -> None:
    """No figure is made up: the page fails where the state does not answer."""
    on = lit()
    on.deps = replace(on.deps, state=Gone(on.world.clock))
    with pytest.raises(Unavailable):
        list(of_cluster(on.deps))


def test_samples_are_of_described_families() -> None:
    """Each sample has a family of the description, with as many labels."""
    labels = {family.name: len(family.labels) for family in FAMILIES}
    assert all(labels[sample.family] == len(sample.labels) for sample in of_cluster(lit().deps))

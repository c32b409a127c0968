"""Flex-start as a capacity type: who may use it, for how long, and what it costs."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_fleet import NOW, T4, pod

from pilotlight.decide.offers.flex_start import LONGEST_S, beyond_flex_start
from pilotlight.decide.offers.offerings import offerings
from pilotlight.decide.offers.selection import eligible
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import Prices
from pilotlight.facts.offers.catalog import Catalog, InstanceType, Price
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import WorkloadClass

WEEK = 7 * 24 * 3600
FLEX = replace(T4, pool="q", capacity_type="flex-start")


@pytest.mark.parametrize(
    ("kind", "run_s", "max_runtime", "why"),
    [
        ("training", 0, None, ""),
        ("training", WEEK, None, ""),
        ("training", WEEK + 1, None, "the pod may run for 16"),
        ("training", 0, WEEK + 3600, "the pod may run for 16"),
        ("training", 2 * WEEK, 3600, ""),
        ("serving", 0, None, "the pod has no end"),
        ("serving", 3600, None, ""),
        ("serving", 0, WEEK, ""),
    ],
)
def test_a_pod_that_may_outlive_its_node_is_refused(
    kind: WorkloadClass, run_s: int, max_runtime: int | None, why: str
) -> None:
    """By its own deadline, else by its class's; a class that is written nothing of runs for a day, serving for ever."""
    shape = pod("p", workload_class=kind, max_run_s=run_s).shape
    said = beyond_flex_start(shape, ClassPolicy(max_runtime=max_runtime))
    assert said.startswith("flex-start ends a node after 7 days (168 h), and ") if why else said == ""
    assert why in said


@given(run_s=st.integers(1, 3 * WEEK), bound_s=st.none() | st.integers(1, 3 * WEEK))
def test_no_pod_is_let_in_that_may_run_longer(run_s: int, bound_s: int | None) -> None:
    """Whatever a pod says of itself, what its class bounds counts too."""
    shape = pod("p", workload_class="batch", max_run_s=run_s).shape
    longest = min(run_s, bound_s or run_s)
    assert (beyond_flex_start(shape, ClassPolicy(max_runtime=bound_s)) == "") == (longest <= LONGEST_S)


@pytest.mark.parametrize(
    ("allowed", "run_s", "why"),
    [
        (("on-demand", "spot"), 0, "class training may not use flex-start (classes.training.capacity_types)"),
        (("flex-start",), WEEK + 60, "flex-start ends a node after 7 days (168 h), and the pod may run for 16"),
        (("flex-start",), 0, ""),
    ],
    ids=["its class does not name it", "it runs for too long", "it may"],
)
def test_a_class_names_it_to_use_it(allowed: tuple[str, ...], run_s: int, why: str) -> None:
    """It is no on-demand: a job may wait for hours. The reason stands in the rejected options."""
    rules = Policy(version=1, classes={"training": ClassPolicy(capacity_types=allowed, gpu_models="any")})  # type: ignore[arg-type]
    found = eligible(pod("p", workload_class="training", max_run_s=run_s).shape, [FLEX], rules, {}, Memory(), NOW)
    assert [one.why.startswith(why) for one in found.rejected] == [True] * bool(why)
    assert len(found.candidates) == (not why)


def of(prices: dict[str, str], **overrides: str) -> tuple[Decimal, datetime | None]:
    """What a node of flex-start costs, and of when that is."""
    made = {kind: Price(usd_per_hour=Decimal(usd), source="s", date="2026-11-01") for kind, usd in prices.items()}
    kind = InstanceType(cloud="gke", gpu_model="H100", gpus=8, prices=made)  # type: ignore[arg-type]
    catalog = Catalog(name="c", as_of=datetime(2026, 11, 1, tzinfo=UTC), instance_types={"a3": kind})
    pools = {"q": PoolPolicy(cloud="gke", instance_type="a3", capacity_type="flex-start")}
    written = {f"a3/{name.replace('_', '-')}": Decimal(usd) for name, usd in overrides.items()}
    ((one,), _) = offerings(Policy(version=1, pools=pools, prices=Prices(overrides=written)), catalog)
    return one.usd_per_hour, one.priced_at


def test_it_costs_its_own_price_else_that_of_on_demand() -> None:
    """The policy's before the catalogue's, of either; a price that is written has no age."""
    assert of({"on-demand": "88", "flex-start": "47"}) == (Decimal(47), datetime(2026, 11, 1, tzinfo=UTC))
    assert of({"on-demand": "88"}) == (Decimal(88), datetime(2026, 11, 1, tzinfo=UTC))
    assert of({"on-demand": "88"}, on_demand="80") == (Decimal(80), None)
    assert of({"on-demand": "88"}, flex_start="45") == (Decimal(45), None)

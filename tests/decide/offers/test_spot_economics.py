"""What spot costs in truth: the golden figures, the laws behind them, and who may use it."""

import json
from decimal import Decimal
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_fleet import offering, plan, pod, policy, verdict

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.offers.offerings import offerings
from pilotlight.decide.offers.spot_economics import (
    TypePrices,
    best_interval_h,
    expected_h,
    longest_s,
    safe_for_spot,
    spot_refusal,
    stretch,
    usd_per_useful_hour,
)
from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.workload import Toleration
from pilotlight.tools.advice.whatif import spot_case, spot_case_as_printed

ON_DEMAND, SPOT = Decimal("32.77"), Decimal("12.50")
ANYTHING = Toleration(operator="Exists")
DAY, MINUTE = 86_400.0, 1 / 60
QUARTER = Decimal("0.25")


def test_the_case_as_printed_keeps_99_5_percent() -> None:
    """The course's own figures, under their own name: $648.64 less $3.12 is $645.52."""
    printed = spot_case_as_printed()
    assert (printed.saved, printed.lost, printed.net) == (Decimal("648.64"), Decimal("3.12"), Decimal("645.52"))
    assert round(printed.kept_share, 4) == Decimal("0.9952")


@pytest.mark.parametrize(
    ("restart_min", "lost", "kept"),
    [
        pytest.param(0, "3.125", "0.9615", id="no restart: 96.15 %"),
        pytest.param(10, "5.208", "0.9358", id="ten minutes: 93.6 %"),
        pytest.param(15, "6.250", "0.9229", id="fifteen minutes: 92.3 %"),
    ],
)
def test_one_node_keeps_less(restart_min: int, lost: str, kept: str) -> None:
    """An interruption each four hours, half of thirty minutes lost: $81.08 saved, less the loss and the restart."""
    case = spot_case(ON_DEMAND, SPOT, Decimal(4), QUARTER, Decimal(restart_min) / 60)
    assert (case.saved, round(case.lost, 3), round(case.kept_share, 4)) == (
        Decimal("81.08"),
        Decimal(lost),
        Decimal(kept),
    )


def test_dalys_factor_is_1_150() -> None:
    """Once in four hours, a minute's checkpoint each thirty, ten minutes to restart: $14.37, 56 % below on-demand."""
    factor = stretch(0.25, 0.5, MINUTE, 10 * MINUTE)
    usd = usd_per_useful_hour(SPOT, factor)
    assert (round(factor, 3), round(usd, 2)) == (1.150, Decimal("14.37"))
    assert round((ON_DEMAND - usd) / (ON_DEMAND - SPOT), 3) == Decimal("0.908")
    assert round(1 - usd / ON_DEMAND, 2) == Decimal("0.56")


@pytest.mark.parametrize(("minutes", "best"), [(1, 21.909), (5, 48.990)])
def test_youngs_interval(minutes: int, best: float) -> None:
    """The best interval at one interruption in four hours, for checkpoints of one and of five minutes."""
    assert best_interval_h(0.25, minutes * MINUTE) * 60 == pytest.approx(best, abs=0.001)


def test_a_day_without_a_checkpoint_takes_1610_hours() -> None:
    """(e^6 - 1) / 0.25: refused, and the refusal says so."""
    assert expected_h(24, 0.25) == pytest.approx(1609.7, abs=0.05)
    assert safe_for_spot(DAY, 0.25) == (
        False,
        "24.0 h without a checkpoint take 1,610 expected hours at 0.25 interruptions an hour; "
        "without one only runs up to 4.7 h are safe",
    )


@pytest.mark.parametrize(
    ("run_s", "rate", "how", "safe"),
    [
        pytest.param(DAY, 0.25, {"checkpoint_s": 1800}, True, id="a day that saves each half hour"),
        pytest.param(DAY, 0.25, {"checkpoint_s": 1800, "age_s": None}, False, id="of unknown age"),
        pytest.param(DAY, 0.25, {"checkpoint_s": 1800, "age_s": 1801}, False, id="older than its interval"),
        pytest.param(DAY, 0.25, {"checkpoint_s": 1800, "age_s": 1800}, True, id="as old as its interval"),
        pytest.param(DAY, 0.25, {"checkpoint_s": 6 * 3600}, False, id="a day that saves each six hours"),
        pytest.param(3600, 0.25, {}, True, id="an hour without"),
        pytest.param(DAY, 0.0, {}, True, id="where nothing is interrupted"),
        pytest.param(1e9, 1.0, {}, False, id="so long that it never ends"),
    ],
)
def test_who_is_safe(run_s: float, rate: float, how: dict[str, float | None], safe: bool) -> None:
    """Whoever takes more than twice as long, or whose checkpoints cannot be trusted, is not."""
    assert safe_for_spot(run_s, rate, **how).safe is safe  # type: ignore[arg-type]


def test_the_golden_figures(shelf: Path) -> None:
    """The figures written down beside the checkout: the case as printed, the corrected one, Young's intervals."""
    golden = json.loads((shelf / "golden_numbers.json").read_bytes())
    for name, case in (
        ("spot_as_printed", spot_case_as_printed()),
        ("spot_fixed_node", spot_case(ON_DEMAND, SPOT, Decimal(4), QUARTER)),
    ):
        ours = {"lost": case.lost, "saved": case.saved, "net": case.net, "kept": case.kept_share}
        wanted = {key: value for key, value in golden[name].items() if key != "status"}
        assert {key: float(value) for key, value in ours.items()} == pytest.approx(wanted, abs=5e-6, rel=5e-5)
    for name, minutes in (("c1", 1), ("c5", 5)):
        assert best_interval_h(0.25, minutes * MINUTE) * 60 == pytest.approx(golden["young_min"][name], abs=1e-3)


@given(rate=st.floats(0.001, 2), checkpoint=st.floats(0.001, 0.2), restart=st.floats(0, 0.5), other=st.floats(0.01, 20))
def test_no_interval_is_much_better_than_youngs(rate: float, checkpoint: float, restart: float, other: float) -> None:
    """Young's is first order: within a quarter of the best, wherever a checkpoint is short against the time between."""
    best = best_interval_h(rate, checkpoint)
    assert stretch(rate, best, checkpoint, restart) <= 1.25 * stretch(rate, other, checkpoint, restart)
    assert stretch(rate, other, checkpoint, restart) >= 1


@given(run=st.floats(0.01, 500), rate=st.just(0.0) | st.floats(1e-6, 3), more=st.floats(1.01, 3))
def test_more_interruptions_never_take_less_time(run: float, rate: float, more: float) -> None:
    """Expected hours grow with the run and with the rate, and are never fewer than the run's own."""
    assert run <= expected_h(run, rate) * (1 + 1e-9)
    assert expected_h(run, rate) <= expected_h(run, rate * more) * (1 + 1e-9) <= inf
    assert expected_h(run, rate) <= expected_h(run * more, rate)


POLICIES = sorted((Path(__file__).parents[3] / "policies").glob("*.yaml"))
CATALOG = Path(__file__).parents[3] / "data" / "catalogs" / "articles.yaml"


@pytest.mark.parametrize("path", POLICIES, ids=[p.stem for p in POLICIES])
@pytest.mark.parametrize("kind", ["training", "serving", "notebook", "batch"])
def test_no_preset_buys_spot_for_a_week_that_saves_nothing(path: Path, kind: str) -> None:
    """A job of seven days without checkpoints goes on-demand under every preset; the refusal of spot says the sum."""
    rules = read_policy(path.read_bytes(), path.name)
    sold, _ = offerings(rules, read_catalog(CATALOG.read_bytes(), CATALOG.name))
    made = plan(
        [pod("week", 8, workload_class=kind, max_run_s=7 * DAY, tolerations=(ANYTHING,))], offerings=sold, rules=rules
    )
    by_name = {o.name: o for o in sold}
    assert made.buys
    assert {by_name[b.offering].capacity_type for b in made.buys} == {"on-demand"}
    told = [r.why for g in made.pods for r in g.rejected if r.code == "spot" and "p4d" in r.offering]
    assert all("88,921 expected hours" in why and "$" in why for why in told)
    assert told or "spot" not in rules.of_class(kind).capacity_types  # type: ignore[arg-type]


@given(
    run_h=st.floats(0.01, 2000),
    rate=st.just(0.0) | st.floats(1e-4, 3),
    share=st.floats(0.05, 1.2),
    boot_s=st.floats(0, 1800),
    checkpoint_s=st.just(0.0) | st.floats(60, 86_400),
)
def test_a_run_that_is_put_on_spot_is_expected_to_cost_no_more_than_on_demand(
    run_h: float, rate: float, share: float, boot_s: float, checkpoint_s: float
) -> None:
    """Whatever length, rate, discount, boot and checkpoints: where spot is allowed it is expected to cost no more."""
    dear = Decimal(10)
    sold = offering(
        "spot", "T4", 1, str(dear * Decimal(repr(share))), capacity_type="spot", interruptions_per_hour=rate,
        boot_s=boot_s, on_demand_usd_per_hour=dear,
    )  # fmt: skip
    wanted = pod("p", workload_class="training", max_run_s=run_h * 3600, checkpoint_s=checkpoint_s).shape
    if not spot_refusal(wanted, sold, ClassPolicy()):
        saves_h = checkpoint_s / 3600 or run_h
        takes_h = MINUTE if checkpoint_s else 0.0
        hours = run_h * stretch(rate, saves_h, takes_h, boot_s / 3600)
        assert float(sold.usd_per_hour) * hours <= 10 * run_h * (1 + 1e-9)


@given(rate=st.floats(1e-3, 3), boot_s=st.floats(0, 1800), on_demand=st.floats(1, 4))
def test_the_length_that_is_named_is_the_longest_that_is_safe(rate: float, boot_s: float, on_demand: float) -> None:
    """A run as long as the verdict names is safe without checkpoints; one a minute longer is not."""
    prices = TypePrices(Decimal(1), Decimal(repr(on_demand)))
    longest = longest_s(rate, boot_s, prices.most_stretch)
    assert not safe_for_spot(longest + 60, rate, prices=prices, restart_s=boot_s).safe
    assert longest == 0 or safe_for_spot(longest, rate, prices=prices, restart_s=boot_s).safe


CHEAP = offering("cheap", "T4", 1, "0.25", capacity_type="spot", interruptions_per_hour=0.25)
DEAR = offering("dear", "T4", 1, "1")


def _bought(checkpoint_s: float, max_run_s: float, require: float | None) -> tuple[str, str]:
    """Where a training pod is put, and what is said of the spot offering."""
    rules = policy(
        (CHEAP, DEAR),
        classes={
            "training": ClassPolicy(
                gpu_models="any", capacity_types=("spot", "on-demand"), require_checkpoint_over=require
            )
        },
    )
    wanted = pod("t", workload_class="training", checkpoint_s=checkpoint_s, max_run_s=max_run_s)
    made = plan([wanted], offerings=(CHEAP, DEAR), rules=rules)
    assert verdict(made, wanted)[0] == "bought"
    (group,) = made.pods
    return group.where.partition("/")[0], next((r.why for r in group.rejected if r.offering == CHEAP.name), "")


def test_an_unsafe_pod_is_not_bought_spot() -> None:
    """A day's training that saves nothing goes on-demand, with the figure, whether its class asks for checkpoints."""
    for require in (None, 3600):
        where, why = _bought(0, DAY, require)
        assert where == "dear"
        assert why.startswith(
            "not safe on spot: 24.0 h without a checkpoint take 1,610 expected hours at 0.25 interruptions an hour"
        )
    assert _bought(1800, DAY, 3600) == ("cheap", "")
    assert _bought(0, 1800, 3600) == ("cheap", "")
    where, why = _bought(0, 5400, 3600)
    assert (where, "tells no checkpoints" in why) == ("dear", True)


def test_checkpoints_too_far_apart_are_refused_without_being_asked_for() -> None:
    """A pod that says it saves each six hours is told what that makes of an hour."""
    where, why = _bought(6 * 3600, DAY, None)
    assert where == "dear"
    assert "not safe on spot: a checkpoint every 6.0 h makes" in why

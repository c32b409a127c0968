"""The articles' worked examples, recomputed: the golden figures, and those that are printed wrong under that name."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from pilotlight.tools.advice.whatif import CASES, Figure, read_cases

DATA = Path(__file__).resolve().parents[3] / "data" / "whatif" / "articles.yaml"
INPUTS = {name: case.inputs for name, case in read_cases(DATA.read_bytes(), str(DATA)).items()}
FIGURES: dict[str, dict[str, Figure]] = {
    name: {figure.name: figure for figure in CASES[name](inputs)} for name, inputs in INPUTS.items()
}

# Worked out by hand from the articles' inputs: (case, figure, value to the last digit shown).
GOLDEN = [
    ("scale-to-zero", "always on", "191376.80"),
    ("scale-to-zero", "lit by the day", "78648.00"),
    ("scale-to-zero", "lit by the day on spot", "30000.00"),
    ("scale-to-zero", "saved by the day", "112728.80"),
    ("scale-to-zero", "saved on spot", "161376.80"),
    ("scale-to-zero", "saved by the day, of all", "0.5890"),
    ("scale-to-zero", "saved on spot, of all", "0.8432"),
    ("scale-to-zero", "lit by the day, same month", "79740"),
    ("keda", "always on", "422.356"),
    ("keda", "scaled to zero", "57.833"),
    ("keda", "always on over scaled to zero", "7.303"),
    ("keda", "with one node kept", "163.309"),
    ("keda", "with the tail, 1 session a day", "59.03"),
    ("keda", "with the tail, 8 sessions a day", "67.42"),
    ("keda", "with the tail, 12 sessions a day", "72.22"),
    ("keda", "scaled to zero, on demand", "83.44"),
    ("mig", "GPUs needed", "8"),
    ("mig", "saved an hour", "1680"),
    ("mig", "saved a month", "1226400"),
    ("mig", "saved an hour at the machine's price", "516.18"),
    ("mig", "saved a month at the machine's price", "376811"),
    ("commitment", "break-even use, one year", "0.67057"),
    ("commitment", "break-even use, three years", "0.46440"),
    ("commitment", "a year on demand", "8612832"),
    ("commitment", "a year, committed for one", "5775468"),
    ("commitment", "a year, committed for three", "3999816"),
    ("commitment", "saved, committed for one", "2837364"),
    ("spot", "saved against on-demand", "81.08"),
    ("spot", "work lost", "3.125"),
    ("spot", "net saving", "77.955"),
    ("spot", "kept of the saving", "0.96146"),
    ("spot", "kept, with a restart", "0.936"),
    ("spot", "hours paid for each useful one", "1.150"),
    ("spot", "a useful hour on spot", "14.37"),
    ("spot", "best checkpoint interval", "21.909"),
    ("spot", "best interval for a long checkpoint", "48.990"),
    ("spot", "expected hours without checkpoints", "1610"),
    ("off-hours", "hours off a day", "15"),
    ("off-hours", "saved a month", "72000"),
    ("off-hours", "saved a month, by the schedule's comment", "108000"),
    ("off-hours", "saved a month at the machine's price", "22122.00"),
    ("waste", "waste", "85500"),
    ("waste", "effective", "0.43"),
    ("year", "p5.48xlarge", "861283.20"),
    ("year", "p4d.24xlarge", "287065.20"),
    ("year", "a3-megagpu-8g", "886687.20"),
    ("year", "32 nodes of p5.48xlarge", "27561062.40"),
    ("idle", "idle", "25"),
    ("idle", "idle a day", "600"),
    ("chargeback", "recovered by use", "674000"),
    ("chargeback", "not recovered by use", "326000"),
    ("month", "total", "3427.50"),
    ("month", "hours", "2846"),
    ("month", "idle", "0.14863"),
    ("month", "efficiency", "0.85137"),
    ("month", "spot", "0.89037"),
    ("month", "idle at the spot rate", "494.91"),
    ("month", "idle at the blended rate", "509.43"),
    ("unit", "an epoch", "96"),
    ("unit", "a thousand requests", "0.021"),
    ("unit", "an experiment", "6"),
    ("unit", "idling", "12"),
    ("unit", "a week of a team's GPUs", "8064"),
]


@pytest.mark.parametrize(("case", "name", "value"), GOLDEN, ids=[f"{case}: {name}" for case, name, _ in GOLDEN])
def test_a_worked_example_gives_its_golden_figure(case: str, name: str, value: str) -> None:
    """Each figure is right to the last digit it is given with, and not named as printed."""
    figure, golden = FIGURES[case][name], Decimal(value)
    assert abs(figure.value - golden) <= Decimal(5).scaleb(int(golden.as_tuple().exponent) - 1)
    assert not figure.printed


def test_what_is_printed_wrong_is_named_as_printed() -> None:
    """The 99.5 % that spot is said to keep is there under that name alone."""
    printed = [f for figures in FIGURES.values() for f in figures.values() if f.printed]
    assert [(f.name, round(f.value, 4)) for f in printed] == [
        ("net saving as printed", Decimal("645.52")),
        ("kept as printed", Decimal("0.9952")),
        ("saved a month as printed", Decimal("76800.0000")),
    ]
    ours = [f.value for f in FIGURES["spot"].values() if f.unit == "share" and not f.printed]
    assert max(ours) < Decimal("0.97")


WHERE = {
    "spot_fixed_node": {"lost": "work lost", "saved": "saved against on-demand", "net": "net saving",
                        "kept": "kept of the saving"},
    "scale_to_zero": {"always_on": "always on", "ten_hours": "lit by the day", "spot": "lit by the day on spot",
                      "save1": "saved by the day", "save2": "saved on spot", "pct1": "saved by the day, of all",
              "pct2": "saved on spot, of all"},
    "keda": {"opt1": "always on", "opt2": "scaled to zero", "ratio": "always on over scaled to zero",
             "min1": "with one node kept"},
    "mig": {"gpus": "GPUs needed", "save_h": "saved an hour", "save_730": "saved a month"},
    "savings_plan": {"breakeven_1y": "break-even use, one year", "breakeven_3y": "break-even use, three years",
                     "save_10_nodes": "saved, committed for one"},
    "chargeback_by_util": {"billed": "recovered by use", "unrecovered": "not recovered by use"},
    "chargeback": {"total": "total", "hours": "hours", "idle_cost_spot_rate": "idle at the spot rate",
                   "idle_cost_blended": "idle at the blended rate", "idle_pct": "idle", "spot_ratio_pct": "spot",
              "efficiency_pct": "efficiency"},
    "year": {"p5": "p5.48xlarge", "p4d": "p4d.24xlarge", "a3mega": "a3-megagpu-8g", "32xp5": "32 nodes of p5.48xlarge"},
    "waste_tree": {"waste": "waste", "effective": "effective"},
    "young_min": {"c1": "best checkpoint interval", "c5": "best interval for a long checkpoint"},
    "idle": {"per_h": "idle", "per_day": "idle a day"},
}  # fmt: skip
CASE_OF = {
    "spot_fixed_node": "spot", "scale_to_zero": "scale-to-zero", "keda": "keda", "mig": "mig",
    "savings_plan": "commitment", "chargeback_by_util": "chargeback", "chargeback": "month", "year": "year",
    "waste_tree": "waste", "young_min": "spot", "idle": "idle",
}  # fmt: skip


ELSEWHERE = {"spot_as_printed", "select"}
"""Golden figures of other tests: ``test_spot`` and ``test_article_score`` here."""


def test_the_teams_golden_file_agrees(shelf: Path) -> None:
    """Every figure of the golden file is a case's, none is left out, and what is printed wrong is not among them."""
    golden = json.loads((shelf / "golden_numbers.json").read_text())
    lines = golden["chargeback"].pop("lines")
    assert lines == [float(figure.value) for figure in list(FIGURES["month"].values())[:3]]
    assert {group: set(of) for group, of in golden.items() if group not in ELSEWHERE} == {
        group: set(names) for group, names in WHERE.items()
    }
    for group, names in WHERE.items():
        for key, name in names.items():
            figure = FIGURES[CASE_OF[group]][name]
            ours = float(figure.value) * (100 if key.endswith("_pct") else 1)
            assert ours == pytest.approx(golden[group][key], rel=1e-4), (group, key)
            assert not figure.printed


def test_a_tail_is_worked_out_for_any_number_of_sessions() -> None:
    """Other inputs give other figures, by the same rule."""
    inputs = {**INPUTS["keda"], "sessions_a_day": Decimal(4)}
    tails = {f.name: f.value for f in CASES["keda"](inputs)}
    once = tails["with the tail, 1 session a day"] - tails["scaled to zero"]
    assert tails["with the tail, 4 sessions a day"] == tails["scaled to zero"] + 4 * once

"""The month's report: parts that add up, the article's own month, and a page that asks for nothing."""

import csv
import io
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from browser import opened, pixels
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, LineKind, MeterDay
from pilotlight.tools.advice.money.month import Month, cents, month
from pilotlight.tools.cli import terminal
from pilotlight.tools.cli.records.report_command import plain
from pilotlight.tools.report.pages.month_page import page
from pilotlight.tools.report.tables.month_table import as_csv, notes, parts, render

BARS = (0xC2, 0x41, 0x0C)
"""The colour of what teams held, in light mode."""

FIRST, LAST = date(2026, 10, 1), date(2026, 10, 31)


def _line(kind: LineKind, hours: str, usd: str, capacity: str = "spot", **of: str) -> CostLine:
    fields: dict[str, Any] = {"pool": "p", "node": "n", "instance_type": "t", "project": "ml", **of}
    return CostLine(kind=kind, capacity_type=capacity, gpu_hours=Decimal(hours), usd=Decimal(usd), **fields)


def _day(day: int, *lines: CostLine, unpriced: tuple[str, ...] = ()) -> MeterDay:
    until = datetime(2026, 10, day, 23, tzinfo=UTC)
    return MeterDay(day=date(2026, 10, day), until=until, lines=lines, unpriced=unpriced)


# Article S2's monthly report: 312 h at $3.06, 1,934 h at $1.17 of which 423 idled, 600 h at $0.35. Its consumers name
# 1,200 h of a machine of which it has 600 (E7): here they are lines of the report.
ARTICLE = month(
    [
        _day(1, _line("used", "312", "954.72", "on-demand", instance_type="a100", team="prod", project="llm")),
        _day(
            2,
            _line("used", "1200", "1404.00", instance_type="a100", team="research", project="sweep"),
            _line("used", "311", "363.87", instance_type="a100", team="research", project="other"),
            _line("idle", "423", "494.91", instance_type="a100", project=""),
        ),
        _day(
            3,
            _line("used", "400", "140.00", instance_type="t4", team="platform", project="jupyter-alice"),
            _line("used", "200", "70.00", instance_type="t4", team="platform", project="ci"),
        ),
    ],
    [],
    FIRST,
    LAST,
)


def test_the_articles_month_is_reported_with_its_right_figures() -> None:
    """The lines, the total, idle, efficiency and spot are those of the article, corrected (E5, E6)."""
    assert (ARTICLE.total.usd, ARTICLE.total.gpu_hours) == (Decimal("3427.50"), Decimal(2846))
    assert {name: amount.usd for name, amount in ARTICLE.machines} == {
        "a100 spot": Decimal("2262.78"),
        "a100 on-demand": Decimal("954.72"),
        "t4 spot": Decimal("210.00"),
    }
    shares = (ARTICLE.idle_share, ARTICLE.efficiency, ARTICLE.spot_share)
    assert [f"{100 * share:.1f}" for share in shares] == ["14.9", "85.1", "89.0"]
    assert (ARTICLE.idle.usd, round(ARTICLE.idle_at_blended, 2)) == (Decimal("494.91"), Decimal("509.43"))


def test_both_rates_of_idle_time_are_named() -> None:
    """A reader sees which rate idle is priced at, and what the other gives."""
    assert (
        "idle is priced at its own nodes' rate, $1.1700; at the month's blended rate of $1.2043 it would be $509.43"
        in notes(ARTICLE)
    )


def test_what_was_held_most_adds_up_to_what_was_held() -> None:
    """The dearest consumers with the others are all that teams held: no consumer has more than there was."""
    held = {(c.project, c.machine): c.held.usd for c in ARTICLE.top}
    assert (held["sweep", "a100 spot"], held["jupyter-alice", "t4 spot"]) == (Decimal("1404.00"), Decimal("140.00"))
    assert sum(held.values()) + ARTICLE.others.usd == ARTICLE.used.usd


AMOUNTS = st.decimals(0, 10_000, places=9)
LINES = st.builds(
    lambda kind, hours, usd, team, project, pool, capacity: _line(
        kind, str(hours), str(usd), capacity, team=team if kind == "used" else "", project=project, pool=pool
    ),
    st.sampled_from(["used", "idle", "shared"]),
    AMOUNTS,
    AMOUNTS,
    st.sampled_from(["", "a", "b", "c"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["p", "q"]),
    st.sampled_from(["spot", "on-demand"]),
)


@given(st.lists(st.tuples(st.integers(1, 31), LINES), max_size=40))
def test_every_part_adds_up_to_the_cent(lines: list[tuple[int, CostLine]]) -> None:
    """Whatever was metered: teams + idle + shared are the total, and each part's lines are its whole in cents."""
    report = month([_day(day, line) for day, line in lines], [], FIRST, LAST)
    assert report.used.usd + report.idle.usd + report.shared.usd == report.total.usd
    total, held = report.total.usd.quantize(Decimal("0.01")), report.split[0]
    assert sum(report.split) == total
    for title, shown in parts(report):
        whole = held if "held" in title else total
        assert sum(line.usd for line in shown) == (whole if shown else 0)
    if report.teams and report.used.usd:
        assert sum(team.with_share for team in report.teams) == report.total.usd


@given(st.lists(st.decimals(0, 1000, places=6), min_size=1, max_size=12))
def test_rounded_parts_are_the_rounded_whole(amounts: list[Decimal]) -> None:
    """No cent appears or is lost, and no part moves by more than what rounding left in all."""
    rounded = cents(amounts, sum(amounts, Decimal(0)))
    assert sum(rounded) == sum(amounts, Decimal(0)).quantize(Decimal("0.01"))
    assert all(abs(a - r) <= Decimal("0.005") * (len(amounts) + 1) for a, r in zip(amounts, rounded, strict=True))


def test_the_bill_is_compared_on_the_days_it_covers() -> None:
    """The meter's part is that of billed days alone; what differs is told."""
    bill = BillDay(day=date(2026, 10, 1), source="s", rows=(BilledDay(day=date(2026, 10, 1), usd=Decimal("12")),))
    metered = [_day(1, _line("used", "1", "10", team="a")), _day(2, _line("used", "1", "90", team="a"))]
    report = month(metered, [bill], FIRST, LAST)
    assert "billed $12.00 for 1 whole day on which the meter counted $10.00: $2.00 is unexplained" in notes(report)


def test_one_teams_report_has_its_lines_alone() -> None:
    """Only what the team held: nothing idle or shared, and no bill, which knows nothing of it."""
    report = month([_day(1, _line("used", "1", "10", team="a"), _line("idle", "1", "5"))], [], FIRST, LAST, team="a")
    assert (report.total.usd, report.idle.usd, report.billed) == (Decimal(10), Decimal(0), None)


def test_days_of_other_months_are_left_out_and_nodes_without_price_are_named() -> None:
    """The month is its days; an unknown price is told and is in no line."""
    other = MeterDay(day=date(2026, 9, 30), until=datetime(2026, 9, 30, tzinfo=UTC), lines=(_line("used", "1", "9"),))
    report = month([other, _day(1, _line("used", "1", "1"), unpriced=("n7",))], [], FIRST, LAST)
    assert (report.total.usd, report.unpriced) == (Decimal(1), ("n7",))
    assert "in no line, for their price is not known: n7" in notes(report)


def _text(report: Month) -> str:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(render(report))
    return console.export_text()


def test_the_terminal_shows_every_part() -> None:
    """Title, parts, and the reconciliation below."""
    out = _text(ARTICLE)
    for words in (
        "$3,427.50 for 2,846.0 GPU-hours",
        "by machine",
        "$1.1700 a GPU-hour",
        "who held most",
        "of the GPU-hours teams held",
    ):
        assert words in out


def test_a_table_for_spreadsheets_adds_up_and_runs_nothing() -> None:
    """Each part's rows are its whole; a name that begins as a formula is quoted."""
    rows = list(csv.DictReader(io.StringIO(as_csv(ARTICLE))))
    assert sum(Decimal(row["usd"]) for row in rows if row["part"] == "by machine") == Decimal("3427.50")
    for begins in "=+-@\t\r":
        odd = month([_day(1, _line("used", "1", "1", team=f"{begins}cmd()"))], [], FIRST, LAST)
        assert terminal.visible_text(f"'{begins}cmd()") in {
            row["name"] for row in csv.DictReader(io.StringIO(as_csv(odd), newline=""))
        }


def test_the_page_asks_for_nothing_and_escapes_names() -> None:
    """No script and no address in it; a team's name stays text."""
    html = page(month([_day(1, _line("used", "1", "1", team="<b>x"))], [], FIRST, LAST), title="October")
    assert ("<script" in html, "http://" in html.replace("http://www.w3.org", ""), "<b>x" in html) == (False,) * 3
    assert "&lt;b&gt;x" in html
    assert page(ARTICLE, title="October").count("<svg") >= 4


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
def test_a_browser_draws_the_month_and_asks_nobody(tmp_path: Path) -> None:
    """Opened where every request would be heard, the page shows its bars and nothing is asked for."""
    picture, asked = opened(page(ARTICLE, title="October"), tmp_path)
    assert asked == []
    assert pixels(picture).count(bytes(BARS)) > 5_000


@pytest.mark.parametrize("empty", [[], [_day(1)]], ids=["no day", "a day without lines"])
def test_a_month_without_lines_is_shown_too(empty: list[MeterDay]) -> None:
    """Nothing was lit: nothing divides by it."""
    report = month(empty, [], FIRST, LAST)
    assert "$0.00 for 0.0 GPU-hours" in _text(report)
    assert "$0.00" in page(report, title="October")


def test_a_unit_of_work_has_its_cost() -> None:
    """The month's dollars over how many there were of it."""
    assert "$35.7031 for each of 96 epochs" in notes(ARTICLE._replace(units=(("epochs", Decimal(96)),)))


@given(st.lists(st.tuples(st.sampled_from(["used", "idle", "shared"]), st.fractions(0, 9), st.sampled_from("abc"))))
def test_as_json_the_parts_are_the_total(parts: list[tuple[LineKind, Fraction, str]]) -> None:
    """Whatever digits the meter's divisions left: teams, idle and shared add up to the total, as they are printed."""
    exact = [(kind, str(Decimal(part.numerator) / Decimal(part.denominator)), team) for kind, part, team in parts]
    lines = [_line(kind, usd, usd, team=team if kind == "used" else "") for kind, usd, team in exact]
    shown = plain(month([_day(1, *lines)], [], FIRST, LAST))
    for figure in ("usd", "gpu_hours"):
        teams = sum((Decimal(team["held"][figure]) for team in shown["teams"]), Decimal(0))
        rest = Decimal(shown["idle"][figure]) + Decimal(shown["shared"][figure])
        assert teams + rest == Decimal(shown["total"][figure])
        assert len(shown["total"][figure]) <= 15

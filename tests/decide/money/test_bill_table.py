"""Bills, budgets' spend and ladders in many states, as tables have them."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from state_tables import differing, line, measured, minutes, states

from pilotlight.decide.money.bills.bill_scope import Rules, scope_bill
from pilotlight.decide.money.budget_ladder import barring_step, climb_ladder, refuses
from pilotlight.decide.money.budget_limits import meters
from pilotlight.decide.money.counted_days import counted_days
from pilotlight.decide.money.passed_limits import HeldNode, comes_to
from pilotlight.decide.money.reconciliation import Compared, compare_with_bill, corrections
from pilotlight.decide.money.spend import budget_spend, drift, forecast
from pilotlight.facts.capacity import Offering
from pilotlight.facts.money.bill import BillDay, BilledDay, CostLine, MeterDay
from pilotlight.facts.money.bill_files import Line
from pilotlight.facts.money.budgets import Forecast, Rung, Spent, StepInForce
from pilotlight.facts.money.money_policy import BillScope, Budget, BudgetScope, CurrencyRate, LadderStep
from pilotlight.tools.cli.records.bill_command import awaited_bills

HERE = Path(__file__).parent
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
FIRST = date(2026, 11, 1)
States = dict[str, Any]

BILLS: States = {
    "lines": (6, 0, 3, 12),
    "days": (3, 1, 9),
    "pools": (("gpu-a", "a", ""), ("", "", ""), ("x", "y", "")),
    "teams": (("", "red"), ("", "")),
    "accounts": (("1", "2"), ("1", "1"), ("", "")),
    "tags": ((("ml", "red"), ("ml", None)), (("ml", "red"),), ((None, None), ("xx", "red"))),
    "scope": ("none", "tags", "account", "payer", "service", "shared"),
    "share": ("0", "0.4", "1"),
    "currencies": (("USD",), ("USD", "EUR"), ("EUR", "GBP")),
    "rates": ((), (1,), (2, 5), (5, 2, 3)),
    "doubts": ((0,), (0, 0, 1), (0, 2), (0, 3)),
    "unread": (("amount",), (), ("day",), ("day", "amount")),
    "sums": (("5",), ("5", "0.001", "-3"), ("100", "0.99", "1")),
    "late": ((0,), (0, 3), (0, 6.9), (0, 7), (0, 8)),
    "cut": (0, 2, 10),
    "dropped": (0, 1, 4),
    "unreached": (False, True),
}


def _line(draw: Random, state: States, n: int) -> Line:
    on = FIRST + draw.randrange(state["days"]) * DAY
    unread = draw.choice(state["unread"]) if state["unread"] and n == 1 else ""
    late = draw.choice(state["late"])
    reach = datetime(on.year, on.month, on.day, tzinfo=UTC) + DAY - timedelta(days=late)
    return Line(
        day=None if unread == "day" else on,
        team=draw.choice(state["teams"]),
        pool=draw.choice(state["pools"]),
        service=draw.choice(("EC2", "EC2", "RDS", "", "S3", "SQS")),
        account=draw.choice(state["accounts"]),
        payer=draw.choice(("9", "8")),
        tags=draw.choice(state["tags"]) if state["scope"] in ("tags", "shared") else (),
        currency=draw.choice(state["currencies"]),
        doubt=draw.choice(state["doubts"]),
        amount=None if unread == "amount" else Decimal(draw.choice(state["sums"])),
        rows=draw.randint(1, 3),
        reach=None if state["unreached"] else reach,
        egress=draw.random() < 0.2,
        instance=draw.choice(("", "i-1")),
    )


def _scope(state: States) -> BillScope | None:
    share = Decimal(state["share"])
    match state["scope"]:
        case "none":
            return None
        case "tags" | "shared":
            return BillScope(tags={"cluster": "{cluster}", "team": "red"}, shared=share)
        case "account":
            return BillScope(accounts=("1",), shared=share)
        case "payer":
            return BillScope(accounts=("9",), shared=share)
    return BillScope(services=("EC2",), shared=share)


def test_which_lines_of_a_bill_are_counted_is_that_of_the_table() -> None:
    """By pools, teams, tags, accounts, services and rates; how far it reaches, and what is in doubt or left out."""
    found = []
    for number, state in enumerate(states(400, BILLS)):
        draw = Random(number)
        lines = [_line(draw, state, n) for n in range(state["lines"])]
        rates = tuple(
            CurrencyRate(currency="EUR", usd=Decimal(at), date=f"2026-11-{at:02}", source="s") for at in state["rates"]
        )
        rules = Rules(cluster="ml", scope=_scope(state), rates=rates, pools={"gpu-a": "a"})
        end = datetime(2026, 11, 1, tzinfo=UTC) + (state["days"] + 1 - state["cut"]) * DAY
        bill = scope_bill("focus", lines, rules, end, dropped=state["dropped"])
        days = [f"{d.day:%d} {d.usd:.3f} {d.team} {d.pool} {d.resource} {d.service} {d.egress}" for d in bill.days]
        answer = (
            f"{days} to {minutes(bill.horizon, NOW)} doubtful {[f'{d:%d}' for d in bill.doubtful]} "
            f"{[one.message for one in bill.findings]} {bill.notes}"
        )
        found.append(line(BILLS, state, answer))
    assert differing(HERE / "bills.txt", found) == []


SPENDS: States = {
    "days": (12, 0, 1, 2, 3, 16, 20),
    "lines": (2, 0, 3),
    "period": ("month", "day", "week"),
    "zone": ("UTC", "America/New_York", "Asia/Tokyo"),
    "measure": ("usd", "gpu_hours"),
    "scope": ("all", "team red", "pool a", "class batch", "team blue"),
    "limit": (100, 30, 500),
    "billed": (4, 0, 1, 9),
    "sources": (("x",), ("x", "y"), ("x", "")),
    "pools": (("a", "b"), ("", ""), ("a", "")),
    "teams": (("red", "blue"), ("", "")),
    "doubt": (False, True),
    "apart": ("0", "0.5", "1", "1.001", "-3", "9"),
    "hour": (12, 0, 0.2, 0.3, 23),
    "begins": (0, 0, 5, 6),
}


def _scoped(words: str) -> Any:
    kind, _, name = words.partition(" ")
    return BudgetScope(**{{"class": "workload_class"}.get(kind, kind): name}) if name else "all"  # type: ignore[arg-type]


def _books(draw: Random, state: States, today: date) -> tuple[list[MeterDay], list[BillDay]]:
    metered, billed = [], []
    for back in range(state["days"], -1, -1):
        on = today - back * DAY
        start = datetime(on.year, on.month, on.day, tzinfo=UTC)
        lines, rows = [], []
        for n in range(state["lines"]):
            usd, pool, team = (
                Decimal(draw.randint(0, 40)) / 4,
                state["pools"][n % 2] or "a",
                draw.choice(state["teams"]),
            )
            lines.append(
                CostLine(
                    kind="used",
                    pool=pool,
                    node=f"n{n}",
                    instance_type="x",
                    capacity_type="spot",
                    team=team,
                    workload_class=draw.choice(("batch", "serving")),
                    usd=usd,
                    gpu_hours=usd / 2,
                    begin=draw.choice((start, start + timedelta(hours=5), None)),
                )
            )
            rows.append(BilledDay(day=on, usd=usd + Decimal(state["apart"]), pool=state["pools"][n % 2], team=team))
        metered.append(MeterDay(day=on, until=start, lines=tuple(lines)))
        if state["begins"] < back and back >= state["days"] - state["billed"]:
            for source in filter(None, state["sources"]):
                billed.append(BillDay(day=on, source=source, rows=tuple(rows), doubt=state["doubt"] and back % 2 == 0))
            if "" in state["sources"] and back % 3 == 0:
                billed.append(BillDay(day=on, source="z", doubt=state["doubt"]))
    return metered, billed


def test_what_is_spent_of_a_budget_is_that_of_the_table() -> None:
    """Billed and metered dollars and GPU-hours of its period, its forecast, and where bill and meter are apart."""
    found = []
    for number, state in enumerate(states(300, SPENDS, seed=2)):
        draw = Random(number)
        now = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(hours=state["hour"])
        metered, billed = _books(draw, state, now.date())
        known = counted_days(metered, billed)
        limits: Any = {state["measure"]: Decimal(state["limit"])}
        budget = Budget(
            name="b", scope=_scoped(state["scope"]), period=state["period"], timezone=state["zone"], **limits
        )
        (meter,) = meters([budget], now)
        own = budget_spend(meter, known, Decimal(0), now)
        f = own.forecast
        compared = compare_with_bill(known.metered, known.billed)
        learnt = corrections(compared)
        shares = [f"{one.pool} {one.factor:.3f} {one.days} {one.spread:.3f} {one.bounded}" for one in learnt]
        waits = [f"{pool} {usd:.2f} {due:.2f}" for pool, usd, due in awaited_bills(metered[-2:], learnt)]
        low = "-" if f.low is None or f.high is None else f"{f.low:.2f} to {f.high:.2f}"
        answer = (
            f"billed {own.billed:.2f} metered {own.metered:.2f} likely {f.likely:.2f} {low} "
            f"out {minutes(f.runs_out, now)}; "
            f"{len(compared)} {sum((one.more for one in compared), Decimal(0)):.2f}; {shares}; {waits}; "
            f"{[f'{one.subject} {one.message}' for one in drift(known)[:3]]} {len(drift(known))}"
        )
        found.append(line(SPENDS, state, answer))
    assert differing(HERE / "spends.txt", found) == []


def test_what_is_learnt_of_bills_is_that_of_the_table() -> None:
    """A pool's correction of days enough, within its bounds, from days that say something; of no older ones."""
    choices: States = {
        "days": (6, 4, 5, 7, 30),
        "apart": (1, 4, 7),
        "metered": ("10", "1", "0.99", "4"),
        "billed": (("11", "12", "9"), ("7.9", "8", "8"), ("12.5", "12.6", "13"), ("0", "10", "-1"), ("8", "1", "20")),
        "doubt": (0, 2),
    }
    found = []
    for state in states(80, choices):
        days = []
        for n in range(state["days"]):
            billed = state["billed"][n % 3]
            doubt = bool(state["doubt"]) and n % state["doubt"] == 0
            on = FIRST + n * state["apart"] * DAY
            days.append(Compared(on, "ab"[n % 7 == 6], Decimal(billed), Decimal(state["metered"]), doubt))
        learnt = [
            f"{c.pool} {c.factor:.4f} {c.through:%m-%d} {c.days} {c.billed} {c.metered} {c.spread:.4f} {c.bounded}"
            for c in corrections(days)
        ]
        found.append(line(choices, state, learnt))
    assert differing(HERE / "learnt.txt", found) == []


def test_forecasts_are_those_of_the_table() -> None:
    """By what days took, what is left of the period, and the pace of today; and when the limit is reached."""
    choices: States = {
        "spent": ("10", "0", "99.99", "100", "120"),
        "days": (
            ("4", "6"),
            (),
            ("4",),
            ("4", "4", "4"),
            ("1", "9", "3", "7", "0"),
            ("5",) * 14,
            ("1", "2") * 8,
            ("0", "0"),
        ),
        "left": (30, 0.5, 3, 12, 2000),
        "second": (0, 0, 30),
        "rate": ("5", "0", "-1", "0.05", "0.09"),
        "limit": ("100", "10", "0"),
    }
    found = []
    for state in states(160, choices):
        now = NOW + timedelta(seconds=state["second"])
        days = [Decimal(each) for each in state["days"]]
        made = forecast(
            Decimal(state["spent"]),
            Decimal(state["limit"]),
            days,
            now,
            now + state["left"] * DAY,
            Decimal(state["rate"]),
        )
        out = "-" if made.runs_out is None else f"{made.runs_out:%m-%d %H:%M:%S}"
        found.append(line(choices, state, f"{made.likely} {made.low} {made.high} {out}"))
    assert differing(HERE / "forecasts.txt", found) == []


LADDERS: States = {
    "share": ("0.8", "0", "0.49", "0.5", "0.75", "0.7499", "0.7999", "0.95", "0.9499", "1", "1.5"),
    "was": (None, "0", "0.5", "0.8", "1"),
    "start": (0, -1440, 1440),
    "steps": (("0.5 notify", "0.8 spot-only", "1 no-new-buys"), (), ("1 no-new-buys", "0.5 spot-only")),
    "dry": (False, True),
    "measure": ("usd", "usd_per_hour", "gpu_hours"),
    "scope": ("all", "team red", "pool t4", "class batch", "class serving"),
    "class": ("batch", "serving", "training"),
    "team": ("red", "", "blue"),
    "sold": ("on-demand", "spot", "reserved"),
    "later": (0, 719, 720, 721),
}


def test_ladders_are_climbed_as_in_the_table() -> None:
    """Which step is in force by what is spent and where it stood, and what that rules out for whom."""
    found = []
    for state in states(400, LADDERS, seed=4):
        ladder: Any = tuple(
            LadderStep(at=Decimal(at), do=do) for at, do in (each.split(" ") for each in state["steps"])
        )
        limits: Any = {"period": "day", **measured(state["measure"], Decimal(100))}
        budget = Budget(name="b", scope=_scoped(state["scope"]), ladder=ladder, ladder_dry_run=state["dry"], **limits)
        (meter,) = meters([budget], NOW)
        spent = Spent(
            meter=meter, billed=Decimal(state["share"]) * 100, metered=Decimal(0), forecast=Forecast(likely=Decimal(0))
        )
        start = meter.start + timedelta(minutes=state["start"])
        was = None if state["was"] is None else Rung(start=start, at=Decimal(state["was"]), since=NOW - DAY)
        rung = climb_ladder(was, spent, NOW)
        steps = [rung.step] if rung.step else []
        later = NOW + timedelta(minutes=state["later"])
        sold = Offering(
            pool="t4", gpu_model="T4", gpus=1, usd_per_hour=Decimal(1), boot_s=60, instance_type="t4",
            capacity_type=state["sold"],
        )  # fmt: skip
        answer = (
            f"{rung.at} since {minutes(rung.since, NOW)} from {minutes(rung.start, NOW)} {[s.why for s in steps]} bars "
            f"{barring_step(steps, sold, state['class'], state['team'], later)!r} refuses "
            f"{refuses(steps, 't4', state['class'], state['team'], later)!r}"
        )
        found.append(line(LADDERS, state, answer))
    assert differing(HERE / "ladders.txt", found) == []


def test_steps_of_many_budgets_rule_out_the_most() -> None:
    """Whichever of them concerns the work, and none whose period is over."""
    one = StepInForce(budget="a", scope=BudgetScope(team="red"), do="spot-only", why="a", until=NOW)
    two = StepInForce(budget="b", scope=BudgetScope(pool="t4"), do="no-new-buys", why="b", until=NOW + DAY)
    sold = Offering(
        pool="t4", gpu_model="T4", gpus=1, usd_per_hour=Decimal(1), boot_s=60, instance_type="t4",
        capacity_type="on-demand",
    )  # fmt: skip
    said = [barring_step([one, two], sold, "batch", "red", NOW + timedelta(hours=hours)) for hours in (-1, 0, 25)]
    assert said == ["a", "b", ""]
    assert [refuses([one, two], "t4", "batch", "red", NOW + timedelta(hours=h)) for h in (-1, 24)] == ["b", ""]


def test_what_a_passed_limit_comes_to_is_told_by_node() -> None:
    """Up to five nodes by name, the first to end first, what is settled, and by when; nothing of a rate or no nodes."""
    (day,) = meters([Budget(name="b", usd=Decimal(10), period="day")], NOW)
    (rate,) = meters([Budget(name="r", usd=Decimal(10), period="hour")], NOW)
    found = []
    for count in (0, 1, 5, 6, 8):
        own = [HeldNode(f"n{n}", Decimal(n + 1) / 2, NOW + timedelta(hours=n * 2)) for n in range(count, 0, -1)]
        for total in (Decimal(4), sum((each.held for each in own), Decimal(0)), Decimal(60)):
            found.append(f"{count} {total} -> {comes_to(day, total, [*own, HeldNode('z', Decimal(0), NOW)])}")
    found.append(f"rate -> {comes_to(rate, Decimal(4), [HeldNode('n', Decimal(4), NOW)])}")
    assert differing(HERE / "passed_limits.txt", found) == []

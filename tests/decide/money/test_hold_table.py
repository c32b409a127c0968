"""Holds in many states, as tables have them: what a node takes of each limit, until when, and how its hold moves on."""

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

from small_fleet import NOW, T4, node, offering, policy
from state_tables import differing, line, measured, minutes, states

from pilotlight.decide.money.budget_balance import Purse
from pilotlight.decide.money.budget_limits import (
    amount,
    counts,
    held_amount,
    latest,
    life,
    longest_run,
    meters,
    most,
    open_hold,
    paid_until,
    refusal,
    stops,
    terms,
    unpaid,
    used_amount,
)
from pilotlight.decide.money.economics import queues
from pilotlight.decide.money.holds import (
    Lit,
    Short,
    adopt_node,
    as_bound,
    commit_pods,
    frozen_nodes,
    lit_instances,
    match,
    moved_on,
    promised_hold,
    put_out,
    report,
    reprice_hold,
    spent_up,
    workload_ends,
)
from pilotlight.decide.money.node_end import empty_node_end, ending
from pilotlight.facts.capacity import BoundPod, Offering
from pilotlight.facts.money.budgets import Balance, Hold, Money, Priced, Terms
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest
from pilotlight.tools.lint.claim_notes import runs_held
from pilotlight.units import HOUR

HERE = Path(__file__).parent
CLASSES: dict[Any, ClassPolicy] = {
    "training": ClassPolicy(gpu_models="any", may_move=("hard-cap",), hold=2 * HOUR, max_runtime=5 * HOUR),
    "batch": ClassPolicy(gpu_models="any", may_move=("hard-cap",), hold=600, idle_timeout=900),
    "serving": ClassPolicy(gpu_models="any", max_runtime=3 * HOUR),
    "notebook": ClassPolicy(gpu_models="any", max_idle_timeout=60),
}
STOPPING = {name: ClassPolicy(gpu_models="any", may_move=("hard-cap",), hold=HOUR) for name in CLASSES}
RULES: dict[str, Policy] = {
    "kept": policy(value_of_wait=Decimal(3)),
    "mixed": policy(classes=CLASSES, value_of_wait=Decimal(3)),
    "stopped": policy(classes=STOPPING, pools={"t4": PoolPolicy(instance_type="T4x1", idle_timeout=120)}),
}
TERMS: dict[str, Any] = {
    "team": ("red", "", "blue"),
    "class": ("batch", "", "serving"),
    "usd": (2, 0, 3),
    "gpus": (2, 0, 1),
    "idle": (10, 0, 5),
    "run": (120, 0, 60, 2880),
    "typical": (60, 30),
    "stretch": (0, 120, 10, 13),
    "stop": (0, 4, 5.5, 20),
    "calls": (0, 5),
    "minimum": (0, 60, 180),
    "step": (1, 60, 3600),
    "source": ("classes.batch.max_runtime", "activeDeadlineSeconds"),
}
HOLDS: dict[str, Any] = {
    "since": (-60, 0, -720, -721, -1, -1500),
    "binds": (15, -60, 0, 1),
    "until": (90, 0, 1, 10, 12, 13, 720, 2200),
    "earlier": ((), (-30,), (-30, 20), (95,)),
    "decision": ("d", "kueue-x"),
    "instance": ("i-n", ""),
    "stopping": (False, True),
}


def _in(count: float) -> datetime:
    return NOW + timedelta(minutes=count)


def _terms(state: dict[str, Any]) -> Terms:
    return Terms(
        pool="t4",
        team=state["team"],
        workload_class=state["class"],
        usd_per_hour=Decimal(state["usd"]),
        gpus=state["gpus"],
        boot_s=300,
        idle_s=60 * state["idle"],
        run_s=60.0 * state["run"],
        run_source=state["source"],
        typical_s=60 * state["typical"],
        stretch_s=60 * state["stretch"],
        stop_s=60 * state["stop"],
        calls_s=60 * state["calls"],
        minimum_s=60 * state["minimum"],
        increment_s=state["step"],
    )


def _hold(state: dict[str, Any]) -> Hold:
    return Hold(
        id="h",
        decision=state["decision"],
        terms=_terms(state),
        since=_in(state["since"]),
        binds_until=_in(state["binds"]),
        until=_in(state["until"]),
        instance=state["instance"],
        stopping=state["stopping"],
        earlier=tuple(Priced(until=_in(at), usd_per_hour=Decimal(5 + n)) for n, at in enumerate(state["earlier"])),
    )


def _shown(hold: Hold) -> str:
    """What of a hold may change."""
    own = hold.terms
    spans = "/".join(f"{each / 60:g}" for each in (own.run_s, own.typical_s, own.stretch_s))
    times = "/".join(minutes(each, NOW) for each in (hold.since, hold.binds_until, hold.until))
    old = ",".join(f"{minutes(one.until, NOW)} ${one.usd_per_hour}" for one in hold.earlier)
    return f"{times} run {spans} {own.run_source} ${own.usd_per_hour} [{old}]{' told' if hold.told else ''}"


LIMITS: dict[str, Any] = {
    "measure": ("usd", "gpu_hours", "usd_per_hour"),
    "limit": (40, 8, 4, 2),
    "hard": (True, False),
    "scope": ("all", "team red", "pool t4", "class batch", "team blue", "class serving"),
    "period": ("day", "week", "month"),
    "room": (40, 8, 5, 4, 3, 2, 0.5, 0, -1),
}


def _budget(state: dict[str, Any]) -> Budget:
    kind, _, name = state["scope"].partition(" ")
    own: Any = {"class": "workload_class"}.get(kind, kind)
    scope: Any = BudgetScope(**{own: name}) if name else "all"
    limits: Any = {"period": state["period"], **measured(state["measure"], Decimal(state["limit"]))}
    return Budget(name="b", scope=scope, hard=state["hard"], **limits)


def test_what_a_node_takes_of_a_limit_is_that_of_the_table() -> None:
    """By its terms, its times, its old prices and its billing steps; and until when so much room would last."""
    choices = TERMS | HOLDS | LIMITS
    found = []
    for state in states(360, choices):
        hold, own = _hold(state), _budget(state)
        (meter,) = meters([own], NOW)
        fresh = open_hold("h", "d", hold.terms, NOW)
        touched = [f"{one.start:%d}" for one in life([own], hold, hold.until)]
        ends = minutes(workload_ends(hold), NOW) if workload_ends(hold) else "-"
        answer = (
            f"takes {held_amount(meter, hold):.3f}, {used_amount(meter, hold, NOW):.3f} by now; "
            f"room until {minutes(latest(meter, hold, Decimal(str(state['room']))), NOW)}; "
            f"paid until {minutes(paid_until(hold, NOW), NOW)}; days {','.join(touched)}; "
            f"bought now {_shown(fresh)} at most {most(hold.terms):.3f}; ends {ends}; "
            f"{refusal(meter, Decimal(50), hold.terms, NOW)}; {counts(own, hold.terms)}"
        )
        found.append(line(choices, state, answer))
    assert differing(HERE / "hold_amounts.txt", found) == []


PODS: dict[str, Any] = {
    "pods": (1, 0, 2),
    "kind": ("batch", "serving", "training", "notebook", "other"),
    "ran": (30, None, 0, 100, 180),
    "longest": (0, 20, 90, 400),
    "grace": (0.5, 10, 60),
    "saves": (0, 5),
    "second": ("batch", "serving", "training"),
    "rules": ("mixed", "kept", "stopped"),
    "later": (0, 20),
}


def _pods(state: dict[str, Any]) -> list[BoundPod]:
    ran, gpu = state["ran"], GpuRequest(count=1)
    first = BoundPod(
        uid="a",
        namespace="ml",
        name="a",
        gpu=gpu,
        workload_class=state["kind"],
        team="red",
        max_run_s=60 * state["longest"],
        started_at=None if ran is None else _in(-ran),
        grace_s=60 * state["grace"],
        checkpoint_takes_s=60 * state["saves"],
    )
    second = BoundPod(uid="b", namespace="ml", name="b", gpu=gpu, workload_class=state["second"], started_at=_in(-5))
    return [first, second][: state["pods"]]


def test_how_a_hold_moves_on_is_that_of_the_table() -> None:
    """By what runs on its node: what it commits to, until when it is renewed, when its node ends, what is left."""
    choices = TERMS | HOLDS | PODS
    found = []
    for state in states(360, choices, seed=2):
        hold, pods, rules = _hold(state), _pods(state), RULES[state["rules"]]
        calls_s, committed = 60 * state["later"], commit_pods(hold, pods, rules)
        on = node("n", T4, pods=tuple(pods))
        known, lit = as_bound(hold, Lit("i-n", "t4", hold.since, on))
        end, empty = ending(hold, pods, rules, NOW), empty_node_end(hold, pods, NOW)
        (meter,) = meters([Budget(name="b", usd=Decimal(40), period="day")], NOW)
        answer = (
            f"commits {_shown(committed)}; promised {_shown(promised_hold(hold))}; "
            f"on {_shown(moved_on(hold, pods, rules, NOW, calls_s))}; "
            f"out {_shown(put_out(hold, NOW, pods, calls_s))}; "
            f"ends {minutes(end.at, NOW)} {end.may} {end.kind} {end.stop_s:g} {end.least_s:g} {end.early_s:g}; "
            f"empty {empty.stop_s:g} {empty.early_s:g}; "
            f"spent {[spent_up(meter, Decimal(own), hold, NOW, calls_s) for own in (1, 2, 4)]}; "
            f"dearer {_shown(reprice_hold(hold, _in(60), Decimal(3)))}; "
            f"{sorted(known.classes.items())} {lit is not None}"
        )
        found.append(line(choices, state, answer))
    assert differing(HERE / "hold_moves.txt", found) == []


def _lit(count: int, ages: tuple[float, ...], pool: str = "t4") -> list[Lit]:
    return [Lit(f"i-{pool}{n}", pool, _in(-age), None) for n, age in enumerate(ages[:count])]


MATCHES: dict[str, Any] = {
    "holds": (2, 1, 3, 0),
    "ages": ((1, 30, 0.5), (0.9, 0.9, 5), (6, 6.1, 20)),
    "names": (("", "", ""), ("i-t40", "", ""), ("i-t40", "i-t40", ""), ("i-gone", "i-t41", ""), ("i-v0", "", "i-x")),
    "matched": (None, 0, -1, 1),
    "lit": (2, 0, 1, 3),
    "born": ((1, 30, 0.5), (0, 0, 0), (6, 25, 11), (10.9, 11, 11.1)),
    "others": (0, 1),
    "desired": (2, 0, 1, 3, 4),
    "unresolved": ("", "d0", "d1"),
    "unsold": ("", "h0", "h1"),
    "ended": (None, 0),
    "decision": ("d", "kueue-"),
}


def test_which_hold_is_whose_is_that_of_the_table() -> None:
    """By their ages, the instances that they name, what the cloud owes, and which calls may still land."""
    found = []
    base = {name: values[0] for name, values in (TERMS | HOLDS).items()}
    for state in states(400, MATCHES, seed=3):
        holds = []
        for n in range(state["holds"]):
            own = {"since": -state["ages"][n], "instance": state["names"][n], "decision": state["decision"] + str(n)}
            one = _hold(base | own)
            at = state["matched"]
            fields = {"id": f"h{n}", "matched_at": None if at is None else _in(at)}
            ended = {"ended_at": NOW} if state["ended"] == n else {}
            holds.append(Hold(**{name: getattr(one, name) for name in one.__struct_fields__} | fields | ended))
        lit = [*_lit(state["lit"], state["born"]), *_lit(state["others"], (1,), "v")]
        pools = [PoolState(name="t4", desired=state["desired"]), PoolState(name="v", desired=0)]
        came = match(holds, lit, pools, NOW, {state["unresolved"]} - {""}, {state["unsold"]} - {""})
        live = [f"{h.id}={one.instance if one else '?'}@{h.instance}/{minutes(h.since, NOW)}/{minutes(h.until, NOW)}/"
                f"{minutes(h.matched_at, NOW)}" for h, one in came.live]  # fmt: skip
        strange, over = [one.instance for one in came.strange], [h.id for h in came.over]
        found.append(line(MATCHES, state, f"{' '.join(live)} strange {strange} over {over}"))
    assert differing(HERE / "hold_matches.txt", found) == []


SOLD: dict[str, Offering] = {
    "t4": T4,
    "slow": offering("v100x4", "V100", 4, "12", boot_s=900.0, minimum_s=3600, increment_s=600),
}
ASKED: dict[str, Any] = {
    "sold": ("t4", "slow"),
    "rules": ("mixed", "kept", "stopped"),
    "class": ("batch", None, "serving", "training", "notebook"),
    "team": ("red", "", "blue"),
    "longest": (0, 30, 300, 301, 2000),
    "stop": (0, 5, 60),
    "typical": (None, 10, 3000),
    "lit": (0, 3, 500),
    "bought": (0, 2),
    "nodes": (1, 2, 5),
    "others": (0, 3),
    "used": (0, 5, 10, 38, 40, 41),
    "charged": (None, 10, 3),
}


def test_what_a_node_is_bought_on_is_that_of_the_table() -> None:
    """By its offering, the policy, its pods and what its budgets leave: its stretch, and how many find room."""
    choices = ASKED | LIMITS
    found = []
    for state in states(300, choices, seed=4):
        rules, own = RULES[state["rules"]], _budget(state)
        typical = {} if state["typical"] is None else {str(state["class"]): 60.0 * state["typical"]}
        made = terms(
            SOLD[state["sold"]],
            rules,
            workload_class=state["class"],
            team=state["team"],
            max_run_s=60.0 * state["longest"],
            typical=typical,
            stop_s=60 * state["stop"],
        )
        other = Budget(name="o", scope=BudgetScope(team="blue"), usd=Decimal(9), hard=state["hard"])
        balances = [Balance(meter=one, total=Decimal(state["used"])) for one in meters([own, other], NOW)]
        purse = Purse(Money(balances=tuple(balances), lit=state["lit"]), NOW, rules, bought=state["bought"])
        fit = purse.fit_terms(made, state["nodes"], state["others"])
        room = [(left, why) for left, why, _ in purse.room(fit)]
        purse.take(fit, 2)
        after, ends = purse.copy().room(fit), [minutes(at, NOW) for at in purse.frees_at()]
        charged = None if state["charged"] is None else _in(-state["charged"])
        pod = BoundPod(uid="a", namespace="ml", name="a", gpu=GpuRequest(count=1), workload_class="serving", team="red")
        seen = Lit("i-n", "t4", _in(-5), node("n", T4, pods=(pod,) * state["bought"]))
        adopted = adopt_node(seen, SOLD[state["sold"]], rules, NOW, charged, str(state["class"]))
        spans = (made.idle_s, made.run_s, made.typical_s, made.stretch_s, fit.stretch_s, fit.calls_s)
        answer = (
            f"{made.team}/{made.workload_class} {' '.join(f'{each / 60:g}' for each in spans)} {made.run_source}; "
            f"room {room}; then {[each for each, *_ in after]}; frees {ends}; "
            f"nobody: {unpaid([own, other], made)}; adopted {_shown(adopted)} {adopted.terms.workload_class}; "
            f"{longest_run(60.0 * state['longest'], state['class'], rules)} {stops(state['class'], rules)} "
            f"{[f'{name} {run / 60:g}' for name, run in runs_held(own, rules).items()]}"
        )
        found.append(line(choices, state, answer))
    assert differing(HERE / "hold_terms.txt", found) == []


def test_nodes_that_end_together_take_turns_as_in_the_table() -> None:
    """The call of each begins so much sooner that all are gone in time, those that are empty first."""
    found = []
    for seconds in product((0, 10, 20, 40), repeat=3):
        for works in ((True, False, True), (False, False, False)):
            ends = [(f"n{n}", _in(60) + timedelta(seconds=s), works[n]) for n, s in enumerate(seconds)]
            found.append(f"{seconds} {works} -> {queues(ends)}")
    many = queues((f"n{n:03}", NOW, False) for n in range(200))
    found.append(f"200 at once -> {sorted(many.values())[:3]} to {sorted(many.values())[-22:-18]}")
    assert differing(HERE / "turns.txt", found) == []


def test_reports_of_a_limit_are_those_of_the_table() -> None:
    """Which nodes cannot be held for, how far what runs may pass the limit, and nothing where all is well."""
    found = []
    for total, count, beyond in product((39, 40, 41, 50), (0, 1, 5, 6), (0, 2)):
        (meter,) = meters([Budget(name="b", usd=Decimal(40), period="day")], NOW)
        refused = [Short(f"n{n}", f"why {n}", Decimal(beyond)) for n in range(count)]
        found.append(f"{total} {count} {beyond} -> {report(meter, Decimal(total), refused)}")
    (hours,) = meters([Budget(name="b", gpu_hours=Decimal(40), period="day")], NOW)
    found.append(f"hours -> {report(hours, Decimal(41), [])} {amount(hours, Decimal('1234.56'))}")
    assert differing(HERE / "hold_reports.txt", found) == []


def test_nodes_are_closed_and_opened_by_instance() -> None:
    """What is frozen takes no pods, what is thawed takes them, and the others stay as they are; none is lit twice."""
    on, off = node("a", schedulable=True), node("b", schedulable=False, instance="")
    told = [(n.name, n.schedulable) for n in frozen_nodes([on, off], {"i-a": True, "b": False})]
    assert told == [("a", False), ("b", True)]
    assert [n.schedulable for n in frozen_nodes([on, off], {})] == [True, False]
    booting = (Booting(instance="i-a", requested_at=NOW), Booting(instance="i-c", requested_at=NOW))
    also = node("c", instance="")
    assert [one.instance for one in lit_instances([off, also], [])] == ["b", "c"]
    lit = lit_instances([on, off], [PoolState(name="t4", desired=3, booting=booting)])
    assert [(one.instance, one.pool, one.node is not None, one.since == NOW) for one in lit] == [
        ("i-a", "t4", True, False),
        ("b", "t4", True, False),
        ("i-c", "t4", False, True),
    ]

"""Findings of a pass over all holds: limits that leave no room, limits that are passed, classes that end nowhere."""

from collections.abc import Collection, Iterable, Iterator

from pilotlight.codec.policy_rules import never_ending
from pilotlight.decide.money.budget_limits import budget_owner, limit
from pilotlight.decide.money.holds import Short, report
from pilotlight.facts.money.budgets import Hold, Meter
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Finding
from pilotlight.flow.budgets.budget_room import BudgetRoom


def hold_findings(
    policy: Policy,
    told: Collection[tuple[Meter, list[Short]]],
    room: BudgetRoom,
    kept: Iterable[tuple[str, Hold]],
    classes: Collection[str],
) -> tuple[Finding, ...]:
    """One finding for each limit that people should know of. ``kept`` are the holds that stay, by their nodes."""
    found: dict[str, Finding] = {}
    for meter, short in told:
        subject = f"budget {meter.budget.name}, {meter.measure}"
        why = report(meter, room.total(meter), short)
        if why and subject not in found:
            found[subject] = Finding(subject=subject, code="budget-hold", message=why)
    return (*found.values(), *_passed(room, kept), *_endless(policy, classes))


def _passed(room: BudgetRoom, kept: Iterable[tuple[str, Hold]]) -> Iterator[Finding]:
    """Hard limits that are below what is settled and held, most likely since they were lowered."""
    for meter in room.meters:
        total = room.total(meter)
        if meter.budget.hard and total > meter.limit:
            from pilotlight.decide.money.passed_limits import HeldNode, comes_to

            shares = [HeldNode(name, room.own(meter, hold), hold.until) for name, hold in kept]
            if why := comes_to(meter, total, shares):
                yield Finding(subject=f"{budget_owner(meter)}, {limit(meter)}", code="budget-passed", message=why)


def _endless(policy: Policy, classes: Iterable[str]) -> Iterator[Finding]:
    """Classes of lit nodes that end nowhere, under a hard budget: what ``check`` refuses is used all the same."""
    lit = {f"classes.{name}.max_runtime": name for name in classes}
    for path, why in never_ending(policy):
        if path in lit:
            yield Finding(subject=f"class {lit[path]}", code="budget-endless", message=f"{path} {why}")

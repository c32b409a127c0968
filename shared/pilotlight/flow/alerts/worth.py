"""What a call comes to in all, for alerts: what a purchase can cost, what a node that goes has cost."""

from decimal import Decimal
from typing import NamedTuple

from pilotlight.decide.money.budget import most, terms
from pilotlight.facts.budget import Terms
from pilotlight.facts.decisions import Buy, NodeVerdict
from pilotlight.facts.policy import DEFAULT_CLASSES
from pilotlight.facts.workload import WorkloadClass
from pilotlight.flow.deps import Deps
from pilotlight.units import cents, human


class Worth(NamedTuple):
    """Dollars as decimal text, empty where they are not known, and what they are made of."""

    usd: str = ""
    why: str = ""


def worth(deps: Deps, call: Buy | NodeVerdict, count: int) -> Worth:
    """The dollars of a call that is made for ``count`` nodes."""
    if isinstance(call, NodeVerdict):
        return Worth(_text(call.spent_usd)) if call.spent_usd else Worth()
    asked = _terms(deps, call)[:count]
    if not asked:
        return Worth()
    usd = sum((most(each) for each in asked), Decimal(0))
    longest = max(asked, key=lambda each: each.run_s)
    return Worth(_text(usd), f"at most {cents(usd)}, if a run takes {human(longest.run_s)} ({longest.run_source})")


def _terms(deps: Deps, buy: Buy) -> tuple[Terms, ...]:
    """One a node: those that budgets hold, else those that the policy's classes make."""
    offering = next((one for one in deps.offerings if one.name == buy.offering), None)
    if buy.terms or offering is None:
        return buy.terms
    return (terms(offering, deps.policy, workload_class=_class(buy.workload_class), team=""),) * buy.count


def _class(name: str) -> WorkloadClass | None:
    return next((known for known in DEFAULT_CLASSES if known == name), None)


def _text(usd: Decimal) -> str:
    return str(usd.quantize(Decimal("0.01")) if usd >= 1 else usd.quantize(Decimal("0.0001")))

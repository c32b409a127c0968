"""What a decision is in words: from what became of its steps, never from what was planned alone."""

from collections.abc import Sequence

from pilotlight.facts.decisions import Buy, Held, NodeVerdict, Plan, Record, Step

NOTHING = "nothing to do"


def did(record: Record) -> tuple[str, ...]:
    """What was done, a line a call, and a line for each that a brake holds."""
    return tuple(line(step) for step in record.steps) + tuple(_held(held) for held in record.plan.held)


def line(step: Step) -> str:
    """One call and what became of it."""
    if step.code == "there":
        return f"asked pool {step.pool} for nothing: {step.note}"
    if step.state == "done":
        call = {
            "grow": f"asked pool {step.pool} for {step.count} x {step.target}",
            "release": f"released {step.target}",
        }[step.call]
        return call + (f" ({step.note})" if step.note else "")
    return f"{step.call} {step.target}: {step.state}" + (f", {step.note}" if step.note else "")


def _held(held: Held) -> str:
    return f"{held.call} {held.target}: {'advised' if held.code == 'mode' else 'stopped'}, {held.why}"


def released(record: Record) -> tuple[str, ...]:
    """The nodes that were given back."""
    return tuple(step.target for step in record.steps if step.call == "release" and step.state == "done")


def summary(plan: Plan, made: Sequence[tuple[Buy | NodeVerdict, Step]]) -> str:
    """A decision in one line; ``made`` are its steps, none of a plan that was not carried out."""
    counts: dict[str, int] = {}
    for group in plan.pods:
        counts[group.verdict] = counts.get(group.verdict, 0) + len(group.pods)
    parts = [_became(call, step) for call, step in made] if made else [_planned(call) for call in plan.calls]
    parts += _nothing(plan) + [_would(held) for held in plan.held]
    parts += [_counted(v, n) for v, n in sorted(counts.items()) if v != "bought"]
    first = next((g.why for g in plan.pods if g.verdict in ("refused", "waiting", "finding")), "")
    return "; ".join(parts) + (f" ({first})" if first else "") if parts else NOTHING


def _nothing(plan: Plan) -> list[str]:
    """What is said first where a person's brake holds every purchase."""
    why = next((held.why for held in plan.held if held.buy is not None and held.code == "paused"), "")
    return [f"buys nothing: {why}"] if why and not plan.buys else []


def _planned(call: Buy | NodeVerdict) -> str:
    if isinstance(call, Buy):
        return f"buys {call.count} x {call.offering}"
    return f"{'stops' if call.stop else 'releases'} {call.node}: {call.why}"


def _became(call: Buy | NodeVerdict, step: Step) -> str:
    if step.state == "done" and step.code != "there":
        return _planned(call)
    verb = f"buys no {step.target}" if step.call == "grow" else f"keeps {step.target}"
    if step.call == "grow" and step.count and step.state in ("denied", "unknown"):
        verb = f"buys {step.count} x {step.target} only"
    return f"{verb}: {step.note or step.state}"


def _would(held: Held) -> str:
    if held.buy is not None:
        return f"would buy {held.count} x {held.target}: {held.why}"
    return f"would release {held.target}: {held.why}"


def _counted(verdict: str, count: int) -> str:
    one, many = _WORDS[verdict]
    return f"1 pod {one}" if count == 1 else f"{count} pods {many}"


_WORDS = {
    "fits": ("fits on a ready node", "fit on ready nodes"),
    "booting": ("waits for a node on its way", "wait for nodes on their way"),
    "waiting": ("waits", "wait"),
    "refused": ("refused", "refused"),
    "finding": ("needs mending", "need mending"),
}
"""What is said of one pod, and of more."""

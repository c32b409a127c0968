"""A rule of the policy in words, as ``pilotlight check`` reads it aloud."""

from collections.abc import Iterator

from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleWhen
from pilotlight.units import cents, count_of, human


def rule_in_words(rule: Rule) -> str:
    """A rule as people say it, in one line."""
    return f"rule {rule.name}: when {' and '.join(_when(rule.when))}, {'; '.join(_set(rule.does)) or 'nothing is set'}"


def _when(when: RuleWhen) -> Iterator[str]:
    if when.waiting is not None:
        of = f" of {', '.join(when.waiting.classes)}" if when.waiting.classes else ""
        since = f", the first for {human(when.waiting.since)}" if when.waiting.since else ""
        pods = count_of(when.waiting.pods, "pod")
        yield f"{pods}{of} wait{'s' * (when.waiting.pods == 1)}{since}"
    if when.use is not None:
        bounds = [("under", when.use.below), ("over", when.use.above)]
        share = " and ".join(f"{word} {bound:.0%}" for word, bound in bounds if bound is not None)
        yield f"{share} of the GPUs of {', '.join(when.use.pools)} are used"
    if when.budget is not None:
        yield f"{when.budget.at:.0%} of budget {when.budget.name} is spent or held"
    if when.time is not None:
        week = f" on {', '.join(when.time.days)}" if len(when.time.days) < 7 else ""
        yield f"it is {when.time.start} to {when.time.end} {when.time.timezone}{week}"


def _set(does: RuleSet) -> Iterator[str]:
    yield from (
        f"{count_of(nodes, 'idle node')} of {pool} stay{'s' * (nodes == 1)} warm" for pool, nodes in does.warm.items()
    )
    yield from (f"{pool} has {count_of(nodes, 'node')} at most" for pool, nodes in does.max.items())
    for pool, idle in does.idle.items():
        yield f"idle nodes of {pool} {'stay' if idle == 'keep' else 'go at once'}"
    for pool, classes in does.avoid.items():
        leave = ", and those that run there are evicted where their class may_move at off-hours" if does.evict else ""
        yield f"nothing is bought in {pool} for {', '.join(classes)}{leave}"
    for kind, types in does.capacity_types.items():
        yield f"{kind} runs on {', '.join(types)}"
    if does.caps is not None:
        caps = does.caps
        limits = [
            f"{count_of(caps.nodes, 'node')}" if caps.nodes is not None else "",
            f"{count_of(caps.gpus, 'GPU')}" if caps.gpus is not None else "",
        ]
        limits += [f"{cents(caps.usd_per_hour)} an hour"] if caps.usd_per_hour is not None else []
        yield f"at most {', '.join(filter(None, limits))} are lit"

"""Fields of a pod that are beyond their bound: refused while it waits, replaced by a safe value once it runs."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from pilotlight.codec.kubernetes import bounds
from pilotlight.codec.kubernetes.bounds import Bound, Unreadable
from pilotlight.codec.kubernetes.typed_objects import Expression, Pod, PodSpec
from pilotlight.facts import labels
from pilotlight.units import Seconds, quantity

_SECONDS = ((labels.CHECKPOINT_S, bounds.CHECKPOINT_EVERY), (labels.CHECKPOINT_TAKES_S, bounds.CHECKPOINT_TAKES))
_NAMES = frozenset(dict(_SECONDS))


def grace_s(spec: PodSpec) -> Seconds:
    """Seconds that a pod may take to stop. Kubernetes counts less than nothing as a second."""
    grace = spec.termination_grace_period_seconds
    if grace < 0:
        return 1.0
    return grace if bounds.GRACE.takes(grace) else bounds.SAFE_GRACE


def run_s(spec: PodSpec) -> Seconds:
    """Seconds that a pod may run, 0 where nothing limits it; a limit of more than a year is one of a year."""
    limit = spec.active_deadline_seconds
    if not limit:
        return 0.0
    return max(0.0, min(limit, bounds.RUN.most)) if limit == limit else 0.0


def seconds(annotations: Mapping[str, str], name: str) -> Seconds:
    """Seconds of an annotation, 0 where there is none. Raises ``Unreadable``."""
    text = annotations.get(name)
    if text is None:
        return 0
    try:
        found = float(quantity(text))
    except ValueError as error:
        raise Unreadable("bad-annotation", f"{name}: {error}: give seconds, as 600") from None
    bound = dict(_SECONDS)[name]
    if not bound.takes(found):
        raise Unreadable(bounds.CODE, bounds.beyond_bound(name, text, bound))
    return max(found, bounds.CHECKPOINT_SOONEST) if found and name == labels.CHECKPOINT_S else found


def safe_seconds(annotations: Mapping[str, str], name: str) -> Seconds:
    """The same of a pod that runs: one that cannot be read is none."""
    try:
        return seconds(annotations, name)
    except Unreadable:
        return 0


def gib(annotations: Mapping[str, str]) -> int:
    """The least memory of a GPU that a pod asks for, in GiB. Raises ``Unreadable``."""
    text = annotations.get(labels.MIN_GPU_MEMORY)
    if text is None:
        return 0
    try:
        amount = quantity(text)
    except ValueError as error:
        raise Unreadable("bad-annotation", f"{labels.MIN_GPU_MEMORY}: {error}: give a quantity, as 40Gi") from None
    found = amount if text.isdigit() else amount / 2**30
    if not bounds.GPU_MEMORY.takes(found):
        raise Unreadable(bounds.CODE, bounds.beyond_bound(labels.MIN_GPU_MEMORY, text, bounds.GPU_MEMORY))
    return int(found) + (found > int(found))


def amounts(request: Mapping[str, Decimal]) -> None:
    """Raise ``Unreadable`` where a request asks for more than any node has."""
    if len(request) > bounds.KINDS.most:
        raise bounds.too_many("resources in its requests", len(request), bounds.KINDS)
    for name, amount in request.items():
        bound = bounds.CORES if name == "cpu" else bounds.AMOUNT
        if not bound.takes(amount):
            raise Unreadable(
                "bad-quantity", bounds.beyond_bound(f"its request for {bounds.quote_value(name)}", amount, bound)
            )


def refuse(pod: Pod) -> None:
    """Raise ``Unreadable`` for a pod that waits and of which a field is beyond its bound."""
    wrong = next(_told(pod), "")
    if wrong:
        raise Unreadable(bounds.CODE, wrong)
    for what, count, bound in _counts(pod):
        if count > bound.most:
            raise bounds.too_many(what, count, bound)


def told_of(pod: Pod) -> list[str]:
    """Texts on fields of a running pod that are beyond their bounds, and the values that count instead."""
    if bounds.GRACE.takes(pod.spec.termination_grace_period_seconds) and _NAMES.isdisjoint(pod.metadata.annotations):
        return []
    wrong = [f"{text}; until then its stop is planned as if it said nothing" for text in _told(pod)]
    for name, _ in _SECONDS:
        try:
            seconds(pod.metadata.annotations, name)
        except Unreadable as problem:
            wrong.append(f"{problem}; until then it counts as not said")
    return wrong


def _told(pod: Pod) -> Iterator[str]:
    grace = pod.spec.termination_grace_period_seconds
    if not bounds.GRACE.takes(grace) and not grace < 0:
        yield bounds.beyond_bound("spec.terminationGracePeriodSeconds", f"{grace:.15g}", bounds.GRACE)


def _counts(pod: Pod) -> Iterator[tuple[str, int, Bound]]:
    """Counts of a pod that are bounded, each with its name."""
    spec, affinity = pod.spec, pod.spec.affinity
    yield "tolerations", len(spec.tolerations), bounds.TOLERATIONS
    yield "volumes", len(spec.volumes), bounds.VOLUMES
    yield "host ports", _ports(spec), bounds.PORTS
    near = [*spec.topology_spread_constraints]
    count = len(near)
    for one in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        count += len(one.required) if one else 0
    yield "terms of pod affinity and spread", count, bounds.NEIGHBOURS
    expressions = _expressions(spec)
    yield "expressions of node affinity", len(expressions), bounds.REQUIREMENTS
    yield "values in its node affinity", sum(len(e.values) for e in expressions), bounds.VALUES


def _ports(spec: PodSpec) -> int:
    return sum(
        1 for c in (*spec.containers, *spec.init_containers) for p in c.ports if p.host_port or spec.host_network
    )


def _expressions(spec: PodSpec) -> list[Expression]:
    found = spec.affinity and spec.affinity.node_affinity and spec.affinity.node_affinity.required
    terms = found.node_selector_terms if found else ()
    return [one for term in terms for one in (*term.match_expressions, *term.match_fields)]

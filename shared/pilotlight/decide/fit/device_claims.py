"""Claims for devices (DRA) made into what plans reckon with: GPUs of one resource, on the nodes whose devices will do.

Each shape that claims devices is tried on every node and offering. Those where its claims come to the same devices are
one choice; the one with room on a ready node is taken, else the cheapest. A label that only its nodes get holds the
shape to them, so that the plan itself knows of no claims. What no node has, or what cannot be told of any, is a finding
before money ([ADR 41]).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec.json import encode
from msgspec.structs import asdict, replace

from pilotlight.decide.fit.cel import evaluate_selector
from pilotlight.decide.fit.cel_values import Absent, Unknown, Unread
from pilotlight.decide.fit.choice_of_devices import Need, Tried, choose_devices, free_devices, may_use
from pilotlight.decide.fit.expected_devices import GPU_DRIVERS, expected_devices, undocumented_attribute
from pilotlight.decide.fit.foreign_claims import but_foreign, told_of
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import ClusterView, Node, Offering
from pilotlight.facts.fit.claimed_devices import CLAIMED, Claimed, DeviceAsk, DeviceKind
from pilotlight.facts.workload import Finding, GpuRequest, PodDemand, PodShape, Requirement, is_gpu, shape
from pilotlight.units import one_line, quantity

LABEL = "resource.k8s.io/claims-"
"""A label of this beginning, and a shape's key, is on what has the devices that the shape claims."""

LONGEST = 600
"""So many characters of why no devices will do are told: names and selectors are the tenant's."""

_Where = TypeVar("_Where", Node, Offering)


def resolve_claims(
    view: ClusterView, offerings: Sequence[Offering], ignored: Collection[str] = ()
) -> tuple[ClusterView, list[Offering]]:
    """The view and the offerings with claims made into GPUs; pods that no node could serve are findings. Claims of
    drivers in ``ignored`` are none.
    """
    view = _without_foreign(view, offerings, ignored)
    shapes = {pod.shape.key: pod.shape for pod in view.pending if pod.shape.claimed is not None}
    plain = frozenset(pod.shape.gpu.resource for pod in view.pending if pod.shape.claimed is None)
    sold = {o.name: o for o in offerings}
    labels: dict[str, dict[str, str]] = {}
    made: dict[str, PodShape | Finding | None] = {}
    for key, one in sorted(shapes.items()):
        assert one.claimed is not None
        if untold := next((ask.untold for asks in one.claimed.asks for ask in asks if ask.untold), ""):
            made[key] = Finding(subject="", code="claim", message=untold)
            continue
        bare = _bare(one, view.nodes)
        here = {o.name: _by_claim(o, plain, bare) for o in offerings}
        tried = _tried(one, view.nodes, here.values())
        one, need = choose_devices(one, tried, view.nodes, offerings)
        stop = _stopped_at(one, tried, view.nodes)
        if need is None or stop:
            made[key] = stop or _finding(one, tried, sorted(bare.intersection(o.pool for o in offerings)))
            continue
        made[key] = _with_need(one, need)
        for name, each in tried.items():
            if each.need == need:
                if name in here:
                    sold[name] = here[name]
                labels.setdefault(name, {})[f"{LABEL}{key}"] = "true"
    pending, findings = _pods(view.pending, made)
    nodes = tuple(_labelled(n, labels.get(f"node {n.name}", {})) for n in view.nodes)
    view = replace(view, pending=pending, findings=(*view.findings, *findings), nodes=nodes)
    return view, [_labelled(sold[o.name], labels.get(o.name, {})) for o in offerings]


def _without_foreign(view: ClusterView, offerings: Sequence[Offering], ignored: Collection[str]) -> ClusterView:
    """The view whose pods beside GPUs claim nothing of drivers that nobody here has; each such driver is a finding.

    Nodes without free devices, of a pool that is not sold, tell of no node to come.
    """
    free = (n.kinds for n in view.nodes if n.ready and (any(n.devices) or any(n.slices.values())))
    known = [kind for kinds in (*free, *(o.kinds for o in offerings)) for kind in kinds]
    pods = [replace(pod, shape=but_foreign(pod.shape, known, ignored)) for pod in view.pending]
    return replace(view, pending=tuple(pods), findings=(*view.findings, *told_of(view.pending, pods, ignored)))


def claim_devices(work: Work) -> None:
    """Make claims into GPUs that nodes and offerings have."""
    work.view, work.offerings = resolve_claims(work.view, work.offerings, work.policy.ignored_drivers)


def _bare(one: PodShape, nodes: Iterable[Node]) -> frozenset[str]:
    """Pools with a ready node that a shape may use, of which no driver has published anything."""
    return frozenset(node.pool for node in nodes if node.ready and not node.kinds and may_use(one, node))


def _by_claim(offering: Offering, plain: frozenset[str], bare: frozenset[str]) -> Offering:
    """The offering with the devices that are known or expected of its nodes.

    Whether a driver or a device plugin will offer what is expected shows when a node joins: where no pod waits for the
    plugin's, it is the driver.
    """
    if offering.pool in bare and not offering.kinds:
        return offering
    kinds = expected_devices(offering)
    if offering.kinds or not plain.isdisjoint(kind.resource for kind in kinds):
        return replace(offering, kinds=kinds)
    named = {kind.resource: f"{CLAIMED}{kind.resource}" for kind in kinds}
    return replace(
        offering,
        kinds=tuple(replace(kind, resource=named[kind.resource]) for kind in kinds),
        resource=named.get(offering.resource, offering.resource),
        slices={named.get(name, name): count for name, count in offering.slices.items()},
    )


def _tried(one: PodShape, nodes: Iterable[Node], offerings: Iterable[Offering]) -> dict[str, Tried]:
    """A shape's claims tried on nodes and offerings, by name: those alike are one trial."""
    assert one.claimed is not None
    devices = {f"node {n.name}": n.kinds for n in nodes if n.kinds} | {o.name: o.kinds for o in offerings}
    keys = {name: encode(kinds) for name, kinds in devices.items()}
    trials = {keys[name]: kinds for name, kinds in devices.items()}
    known = {key: _try(one.claimed, one.gpu, kinds) for key, kinds in trials.items()}
    return {name: known[key] for name, key in keys.items()}


def _try(claimed: Claimed, gpu: GpuRequest, kinds: Sequence[DeviceKind]) -> Tried:
    """Claims tried on these devices, all of them free."""
    need: Counter[str] = Counter()
    used: list[DeviceKind] = []
    unknown = ""
    try:
        for alternatives in claimed.asks:
            found, doubt = _take(alternatives, kinds, need)
            unknown = unknown or doubt
            if found is None:
                return Tried(unknown=unknown)
            used.append(found)
    except Unread as problem:
        return Tried(unread=str(problem))
    except _Lacking as lacks:
        return Tried(stops=str(lacks))
    several = sum(need.values()) > 1
    if several and (odd := next((n for n in claimed.alike if not _agree(n, used)), "")):
        return Tried(unknown=odd)
    gpus = [name for name in need if is_gpu(name)]
    if len(gpus) > 1 or (gpus and gpu.count):
        return Tried()
    return Tried(need=tuple(sorted(need.items())))


class _Lacking(Exception):
    """A selector reads what a device does not have."""


def _take(
    alternatives: Iterable[DeviceAsk], kinds: Sequence[DeviceKind], need: Counter[str]
) -> tuple[DeviceKind | None, str]:
    """Devices of the first alternative that is there, counted to what is needed; and what could not be told of it."""
    unknown = ""
    for ask in alternatives:
        matching = [(kind, _chooses(ask, kind)) for kind in kinds]
        if lacks := next((m.name for _, m in matching if isinstance(m, Absent)), ""):
            raise _Lacking(lacks)
        doubt, stops = _doubt(ask, matching)
        unknown = unknown or doubt
        if stops:
            return None, stops
        least = 1 if ask.every else ask.count
        found = next((k for k, m in matching if m is True and k.count >= need[k.resource] + least), None)
        if found is not None:
            need[found.resource] += found.count if ask.every else ask.count
            return found, unknown
    return None, unknown


def _doubt(ask: DeviceAsk, matching: Iterable[tuple[DeviceKind, object]]) -> tuple[str, str]:
    """What nobody knows of devices, and an attribute that they may lack, at which the scheduler would stop."""
    doubtful = [(kind, m) for kind, m in matching if isinstance(m, Unknown)]
    stops = (undocumented_attribute(ask.selectors, kind) for kind, _ in doubtful)
    return next((m.name for _, m in doubtful), ""), next((name for name in stops if name), "")


def _chooses(ask: DeviceAsk, kind: DeviceKind) -> bool | Unknown | Absent:
    unknown: Unknown | None = None
    for selector in ask.selectors:
        try:
            found = evaluate_selector(selector, kind)
        except Unread as problem:
            raise Unread(f"its selector for {ask.named} uses {problem}") from problem
        if found is False or isinstance(found, Absent):
            return found
        if isinstance(found, Unknown):
            unknown = unknown or found
    has = _has_amounts(ask, kind)
    return (unknown or True) if has is True else has


def _has_amounts(ask: DeviceAsk, kind: DeviceKind) -> bool | Unknown:
    """Whether each device has what is asked for; of one that claims share nobody knows what is left."""
    for name, least in ask.amounts:
        full = name if "/" in name else f"{kind.driver}/{name}"
        has = kind.capacity.get(full)
        if kind.shares or (has is None and not kind.seen):
            return Unknown(full)
        try:
            if has is None or quantity(has) < quantity(least):
                return False
        except ValueError:
            return Unknown(full)
    return True


def _agree(name: str, used: Sequence[DeviceKind]) -> bool:
    values = [kind.attributes.get(name, kind.versions.get(name)) for kind in used]
    return None not in values and len(set(values)) == 1


def _stopped_at(one: PodShape, tried: Mapping[str, Tried], nodes: Iterable[Node]) -> Finding | None:
    """What stops the scheduler at a node that is there, before it comes to any other."""
    able = (n for n in nodes if n.ready and n.schedulable and not n.home and may_use(one, n))
    free = (n.name for n in able if any(free_devices(n, kind.resource) for kind in n.kinds))
    found = next(((name, stops) for name in free if (stops := tried[f"node {name}"].stops)), None)
    return _lacking(found[1], f"node {found[0]}") if found else None


def _lacking(attribute: str, where: str) -> Finding:
    why = (
        f"a selector of its claim reads {attribute}, which devices of {where} do not have: the scheduler gives up the "
    )
    return Finding(subject="", code="claim-selector", message=one_line(f"{why}pod there; ask has(...) first", LONGEST))


def _with_need(one: PodShape, need: Need) -> PodShape:
    """The shape that asks for its devices as if by resource, on the nodes that have them."""
    gpu = next((GpuRequest(count=count, resource=name) for name, count in need if is_gpu(name)), one.gpu)
    held = Requirement(key=f"{LABEL}{one.key}", operator="In", values=("true",))
    fields = asdict(one) | {
        "gpu": gpu,
        "claimed": None,
        "other": tuple(sorted((*one.other, *((name, n) for name, n in need if not is_gpu(name))))),
        "terms": tuple((*term, held) for term in one.terms) or ((held,),),
    }
    return replace(shape(**{**fields, "key": ""}), key=one.key)


def _finding(one: PodShape, tried: Mapping[str, Tried], bare: Sequence[str]) -> Finding | None:
    """Why no node will do; None where nothing says that GPUs are asked for."""
    claimed = one.claimed or Claimed(asks=())
    named = ", ".join(sorted({ask.named for alternatives in claimed.asks for ask in alternatives}))
    unread = next((t.unread for t in tried.values() if t.unread), "")
    unknown = sorted({t.unknown for t in tried.values() if t.unknown})
    stops = next((t.stops for t in tried.values() if t.stops), "")
    texts = [text for alternatives in claimed.asks for ask in alternatives for text in (ask.named, *ask.selectors)]
    if unread:
        why = f"{unread}, which is not read here: write it with ==, &&, ||, in, quantity() or semver(), or buy by hand"
        code = "claim-selector"
    elif unknown:
        why = (
            f"asks by claim for {named}, which depends on {' and '.join(unknown)}: no pool's nodes are known by it "
            "before one has joined. Select by productName, architecture or profile, or start one node of the pool"
        )
        code = "claim-unknown"
    elif stops:
        return _lacking(stops, "the pools")
    elif any(driver in text for text in texts for driver in GPU_DRIVERS):
        why = f"asks by claim for {named}: no pool has such devices, or as many on one node; add one, or ask for others"
        why += f"; no driver publishes devices of the nodes of {' and '.join(bare)}: install it there" if bare else ""
        code = "claim-devices"
    elif one.gpu.count:
        why = (
            f"claims {named} beside its GPUs: no pool is known to have such devices, or as many on one node; add one, "
        )
        why += "ask for others, or list the driver in ignored_drivers"
        code = "claim-devices"
    else:
        return None
    return Finding(subject="", code=code, message=one_line(why, LONGEST))


def _pods(
    pending: Iterable[PodDemand], made: Mapping[str, PodShape | Finding | None]
) -> tuple[tuple[PodDemand, ...], list[Finding]]:
    """The pods with what their claims came to; those that want no GPU at all are none of ours."""
    pods: list[PodDemand] = []
    findings: list[Finding] = []
    for pod in pending:
        found = made.get(pod.shape.key, pod.shape)
        if isinstance(found, Finding):
            findings.append(replace(found, subject=pod.full_name, uid=pod.uid))
        elif found is not None and (found.gpu.count or found is pod.shape):
            pods.append(replace(pod, shape=found) if found is not pod.shape else pod)
    return tuple(pods), findings


def _labelled(where: _Where, more: Mapping[str, str]) -> _Where:
    return replace(where, labels={**where.labels, **more}) if more else where

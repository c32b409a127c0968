"""Rules on the pods near by: required pod affinity and anti-affinity, topology spread, and ports of the host.

Of every pod that waits it is worked out which rules it follows and which of others' rules count it; and of the pods
that are there already, how many each rule counts in each domain. Sources: Kubernetes 1.36, the scheduler's plugins
InterPodAffinity, PodTopologySpread and NodePorts.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec

from pilotlight.codec.kubernetes.bounds import NEIGHBOURS, RULES, SAID
from pilotlight.codec.kubernetes.companions import Namespace
from pilotlight.codec.kubernetes.pods.pod_placement import pod_terms, tolerations
from pilotlight.codec.kubernetes.selectors import covers
from pilotlight.codec.kubernetes.typed_objects import Expression, KubeNode, Pod, PodTerm, Selector, Spread
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import HOME, NODE_NAME
from pilotlight.facts.workload import Near, NearRule
from pilotlight.units import one_line

Namespaces = Mapping[str, Namespace]
_Carried = Mapping[str, tuple[tuple[str, "_Whom"], list[Pod]]]
_Grouper = Callable[..., "_Group"]
_NAME_LABEL = "kubernetes.io/metadata.name"


class Around(NamedTuple):
    """Relations of pods that wait or are DaemonSets', by uid or name; by rule the pods that are there, by domain."""

    near: dict[str, Near]
    counts: dict[str, dict[str, int]]


NOBODY = Around({}, {})


class _Whom(NamedTuple):
    """Pods by label in some namespaces: in those listed, and in those whose labels ``of_spaces`` covers."""

    spaces: tuple[str, ...]
    of_spaces: Selector | None
    selector: Selector | None

    def has(self, pod: Pod, namespaces: Namespaces) -> bool:
        """True where a pod is one of them."""
        space = pod.metadata.namespace
        if self.selector is None or not covers(self.selector, pod.metadata.labels):
            return False
        if space in self.spaces:
            return True
        if self.of_spaces is None:
            return False
        known = namespaces.get(space)
        return covers(self.of_spaces, {_NAME_LABEL: space, **(known.metadata.labels if known else {})})


class _Group(NamedTuple):
    """The pods that are all of ``whom`` at once; with ``carries`` those that have this anti-affinity themselves."""

    id: str
    whom: tuple[_Whom, ...]
    carries: str = ""


def uses_near(pod: Pod) -> bool:
    """True where other pods decide where this one may run."""
    affinity = pod.spec.affinity
    near = affinity and (affinity.pod_affinity or affinity.pod_anti_affinity)
    return bool(near or any(s.when_unsatisfiable == "DoNotSchedule" for s in pod.spec.topology_spread_constraints))


def keeps_away(pod: Pod) -> bool:
    """True where a pod that is there may keep others from being near it."""
    affinity = pod.spec.affinity
    return bool(affinity and affinity.pod_anti_affinity and affinity.pod_anti_affinity.required)


def host_ports(pod: Pod) -> tuple[str, ...]:
    """The ports of its node that a pod takes, as in ``Near``; its sidecars' too."""
    spec = pod.spec
    sidecars = [c for c in spec.init_containers if c.restart_policy == "Always"] if spec.init_containers else ()
    found: set[str] = set()
    for container in (*spec.containers, *sidecars):
        for port in container.ports:
            if number := port.host_port or (port.container_port if spec.host_network else 0):
                host = f"/{port.host_ip}" if port.host_ip not in ("", "0.0.0.0") else ""
                found.add(f"{port.protocol or 'TCP'}/{number}{host}")
    return tuple(sorted(found)) if found else ()


def crowded_namespaces(pods: Iterable[Pod]) -> frozenset[str]:
    """The namespaces whose rules are more than a look counts, all in all: those that have the most different ones."""
    by_space: dict[str, list[tuple[Pod, PodTerm | Spread]]] = defaultdict(list)
    for pod in pods:
        by_space[pod.metadata.namespace] += [(pod, one) for one in _near_terms(pod)]
    if sum(map(len, by_space.values())) <= RULES:
        return frozenset()
    counts = {
        space: len({_digest(one, _with_keys(one.label_selector, one.match_label_keys, (), pod)) for pod, one in found})
        for space, found in by_space.items()
    }
    fewest = sorted(counts, key=lambda space: (counts[space], space))
    so_far = dict(zip(fewest, accumulate(counts[space] for space in fewest), strict=True))
    return frozenset(space for space, count in so_far.items() if count > RULES)


def _near_terms(pod: Pod) -> list[PodTerm | Spread]:
    affinity = pod.spec.affinity
    both = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return [*pod.spec.topology_spread_constraints, *(term for one in both if one for term in one.required)]


def around(
    waiting: Sequence[Pod],
    there: Sequence[Pod],
    nodes: Iterable[KubeNode],
    namespaces: Namespaces,
    full: frozenset[str] = frozenset(),
    daemons: Sequence[Pod] = (),
) -> Around:
    """The rules of the pods that wait among themselves and with the pods on nodes. Nothing where there are none.

    Those that pods of ``full`` namespaces carry are left out: there are too many. ``daemons`` are pods that nodes to
    come will have, one of each.
    """
    carried = _carried((*waiting, *there, *daemons), full)
    if not carried and not any(uses_near(pod) or host_ports(pod) for pod in waiting):
        return NOBODY
    rules, groups = _rules(waiting, carried, namespaces)
    carriers = {key: {_id(pod) for pod in pods} for key, (_, pods) in carried.items()}
    near = {_id(pod): _near(pod, rules.get(_id(pod), ()), groups, carriers, namespaces) for pod in (*waiting, *daemons)}
    known = {node.metadata.name: node for node in nodes}
    unique = {rule.key: rule for own in rules.values() for rule in own}
    members = _members(there, groups, carriers, namespaces) if unique else {}
    counts = {
        key: (_spread_count if rule.kind == "spread" else _count)(rule, members[rule.group], known)
        for key, rule in unique.items()
    }
    at_home = {
        rule.key_at(name): found
        for rule in unique.values()
        if rule.minds_homes
        for name, found in _counts_at_home(rule, members[rule.group], known)
    }
    return Around({name: one for name, one in near.items() if one != Near()}, counts | at_home)


def _id(pod: Pod) -> str:
    return pod.metadata.uid or pod.name


def _digest(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()


def _carried(pods: Iterable[Pod], full: frozenset[str]) -> _Carried:
    """Every required anti-affinity there is outside ``full``, as (topology, whom), and the pods that have it."""
    found: dict[str, tuple[tuple[str, _Whom], list[Pod]]] = {}
    for pod in pods:
        affinity = pod.spec.affinity
        if affinity is None or affinity.pod_anti_affinity is None or pod.metadata.namespace in full:
            continue
        for term in affinity.pod_anti_affinity.required[: int(NEIGHBOURS.most)]:
            whom = _whom(term, pod)
            found.setdefault(_digest(whom, term.topology_key), ((term.topology_key, whom), []))[1].append(pod)
    return found


def _whom(term: PodTerm, pod: Pod) -> _Whom:
    spaces = term.namespaces
    if not spaces and term.namespace_selector is None:
        spaces = (pod.metadata.namespace,)
    selector = _with_keys(term.label_selector, term.match_label_keys, term.mismatch_label_keys, pod)
    return _Whom(tuple(sorted(spaces)), term.namespace_selector, selector)


def _with_keys(selector: Selector | None, match: Sequence[str], mismatch: Sequence[str], pod: Pod) -> Selector | None:
    """A selector with the pod's own values of some keys asked for, or ruled out."""
    if selector is None or not (match or mismatch):
        return selector
    own = pod.metadata.labels
    more = [Expression(key=k, operator="In", values=(own[k],)) for k in match if k in own]
    more += [Expression(key=k, operator="NotIn", values=(own[k],)) for k in mismatch if k in own]
    known = list(selector.match_expressions)
    more = [one for one in more if one not in known]
    return msgspec.structs.replace(selector, match_expressions=(*known, *more)) if more else selector


def _rules(
    waiting: Sequence[Pod], carried: _Carried, namespaces: Namespaces
) -> tuple[dict[str, tuple[NearRule, ...]], dict[str, _Group]]:
    """The rules of each waiting pod, and every group that they count."""
    groups: dict[str, _Group] = {}
    rules: dict[str, tuple[NearRule, ...]] = {}

    def group(whom: tuple[_Whom, ...], carries: str = "") -> _Group:
        name = f"!{carries}" if carries else _digest(whom)
        return groups.setdefault(name, _Group(name, whom, carries))

    for pod in waiting:
        own = [*_beside(pod, group, namespaces), *_apart(pod, group), *_spreads(pod, group, namespaces)]
        for key, ((topology, whom), _) in carried.items():
            if whom.has(pod, namespaces):
                shunned = group((), key)
                says = f"apart from pods that keep {_said(whom)} away (by {topology})"
                own.append(NearRule(kind="apart", key=shunned.id, group=shunned.id, topology=topology, says=says))
        rules[_id(pod)] = tuple({rule.key: rule for rule in own}.values())
    return rules, groups


def _beside(pod: Pod, group: _Grouper, namespaces: Namespaces) -> Iterator[NearRule]:
    """Required affinity: pods count that match all of its terms."""
    affinity = pod.spec.affinity
    terms = affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()
    whom = tuple(_whom(term, pod) for term in terms)
    for topology in dict.fromkeys(term.topology_key for term in terms):
        counted = group(whom)
        yield NearRule(
            kind="with",
            key=_digest("with", counted.id, topology),
            group=counted.id,
            topology=topology,
            own=all(one.has(pod, namespaces) for one in whom),
            says=f"beside pods with {' and '.join(map(_said, whom))} (by {topology})",
        )


def _apart(pod: Pod, group: _Grouper) -> Iterator[NearRule]:
    affinity = pod.spec.affinity
    for term in affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ():
        whom = _whom(term, pod)
        counted, says = group((whom,)), f"apart from pods with {_said(whom)} (by {term.topology_key})"
        key = _digest("apart", counted.id, term.topology_key)
        yield NearRule(kind="apart", key=key, group=counted.id, topology=term.topology_key, says=says)


def _spreads(pod: Pod, group: _Grouper, namespaces: Namespaces) -> Iterator[NearRule]:
    spreads = [s for s in pod.spec.topology_spread_constraints if s.when_unsatisfiable == "DoNotSchedule"]
    keys = tuple(sorted({s.topology_key for s in spreads}))
    for one in spreads:
        whom = _Whom((pod.metadata.namespace,), None, _with_keys(one.label_selector, one.match_label_keys, (), pod))
        counted, own = group((whom,)), whom.has(pod, namespaces)
        yield _spread(pod, one, counted, keys, own=own, says=_said(whom))


def _spread(pod: Pod, one: Spread, counted: _Group, keys: tuple[str, ...], *, own: bool, says: str) -> NearRule:
    terms = pod_terms(pod) if one.node_affinity_policy != "Ignore" else ()
    bears = tolerations(pod.spec.tolerations) if one.node_taints_policy == "Honor" else None
    return NearRule(
        kind="spread",
        key=_digest("spread", counted.id, one.topology_key, keys, terms, bears),
        group=counted.id,
        topology=one.topology_key,
        own=own,
        max_skew=one.max_skew,
        min_domains=one.min_domains or 1,
        keys=keys,
        nodes=terms,
        bears=bears,
        says=f"spread evenly with pods with {says} (by {one.topology_key})",
    )


def _near(
    pod: Pod,
    rules: tuple[NearRule, ...],
    groups: Mapping[str, _Group],
    carriers: Mapping[str, set[str]],
    namespaces: Namespaces,
) -> Near:
    own = (name for name, group in groups.items() if _in(pod, group, carriers, namespaces))
    return Near(rules=rules, groups=tuple(sorted(own)), ports=host_ports(pod))


def _in(pod: Pod, group: _Group, carriers: Mapping[str, set[str]], namespaces: Namespaces) -> bool:
    if group.carries:
        return _id(pod) in carriers[group.carries]
    return all(whom.has(pod, namespaces) for whom in group.whom)


def _members(
    there: Sequence[Pod], groups: Mapping[str, _Group], carriers: Mapping[str, set[str]], namespaces: Namespaces
) -> dict[str, list[Pod]]:
    """The pods of each group that are on nodes. Pods of equal labels are asked for once."""
    alike: dict[tuple[str, tuple[tuple[str, str], ...]], list[Pod]] = defaultdict(list)
    for pod in there:
        alike[pod.metadata.namespace, tuple(sorted(pod.metadata.labels.items()))].append(pod)
    found: dict[str, list[Pod]] = {}
    for name, group in groups.items():
        if group.carries:
            found[name] = [pod for pod in there if _id(pod) in carriers[group.carries]]
        else:
            found[name] = [p for pods in alike.values() if _in(pods[0], group, carriers, namespaces) for p in pods]
    return found


def _count(rule: NearRule, members: Iterable[Pod], nodes: Mapping[str, KubeNode]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in members:
        node = nodes.get(pod.node)
        value = node.metadata.labels.get(rule.topology) if node else None
        if value is not None:
            found[value] = found.get(value, 0) + 1
    return found


def _spread_count(rule: NearRule, members: Iterable[Pod], nodes: Mapping[str, KubeNode]) -> dict[str, int]:
    """Every domain there is, empty ones too. Pods that are being deleted do not count."""
    domains = {name: node.metadata.labels[rule.topology] for name, node in nodes.items() if _counts(rule, node)}
    found = dict.fromkeys(domains.values(), 0)
    for pod in members:
        if pod.node in domains and not pod.metadata.deletion_timestamp:
            found[domains[pod.node]] += 1
    return found


def _counts_at_home(
    rule: NearRule, members: Iterable[Pod], nodes: Mapping[str, KubeNode]
) -> Iterator[tuple[str, dict[str, int]]]:
    """What a spread counts on each node that has a home, as a pod sees it that tolerates that one."""
    there: dict[str, list[Pod]] = defaultdict(list)
    for pod in members:
        there[pod.node].append(pod)
    for name in there.keys() & nodes.keys():
        node = nodes[name]
        taints = tuple(taint for taint in node.spec.taints if taint.key != HOME)
        if len(taints) < len(node.spec.taints):
            bare = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))
            yield name, _spread_count(rule, there[name], {name: bare})


def _counts(rule: NearRule, node: KubeNode) -> bool:
    labels = node.metadata.labels
    if any(key not in labels for key in rule.keys):
        return False
    if not selects({**labels, NODE_NAME: node.metadata.name}, rule.nodes):
        return False
    return rule.bears is None or untolerated_taint(node.spec.taints, rule.bears) is None


def _said(whom: _Whom) -> str:
    selector = whom.selector or Selector()
    words = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    words += [f"{e.key} {e.operator} {','.join(e.values)}".rstrip() for e in selector.match_expressions]
    return one_line(", ".join(words[:3]), SAID) or "any labels"

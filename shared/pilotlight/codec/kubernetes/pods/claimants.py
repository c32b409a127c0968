"""Claimants: the pods of one read with their claims settled, each once, and what was refused of them."""

from collections.abc import Hashable, Iterable, Iterator, Mapping

from pilotlight.codec.kubernetes import bounds
from pilotlight.codec.kubernetes.companions import Namespace
from pilotlight.codec.kubernetes.pods.requests import Asked, whole_units
from pilotlight.codec.kubernetes.typed_objects import Container, Pod
from pilotlight.facts import labels
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.demand.settled_claims import Refused, Settled, refusals, settle_claims
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Classifier, Finding, PodDemand, PodTraits

_NO_SPACES: Mapping[str, Namespace] = {}


class Claimants:
    """Settles what pods claim by the policy and by the labels of their namespaces."""

    def __init__(self, policy: Policy, classify: Classifier, namespaces: Mapping[str, Namespace] = _NO_SPACES) -> None:
        self._policy, self._classify, self._namespaces = policy, classify, namespaces
        self._found: dict[str, tuple[Pod, Settled]] = {}
        self._alike: dict[Hashable, tuple[Asked, Settled]] = {}  # With the first pod, whose parts are told by id.
        self.on_nodes: dict[Hashable, tuple[Asked, BoundPod]] = {}  # The first on a node of those that are alike.
        self.waiting: dict[Hashable, tuple[Asked, PodDemand]] = {}  # The first of those that wait.

    def settle(self, asked: Asked) -> Settled:
        """A pod's claims as they count; of pods of one template, whose parts are kept once, settled once."""
        pod, meta = asked.pod, asked.pod.metadata
        owner = meta.owner
        said = (owner.kind if owner else "", meta.annotations.get(labels.WORKLOAD_CLASS[0]), id(meta.labels))
        gpus = asked.gpu.count if asked.gpu else 0
        alike = (id(pod.spec.containers), meta.namespace, pod.spec.priority, gpus, id(asked.request), said)
        known = self._alike.get(alike)
        if known is None:
            known = self._alike[alike] = asked, self._settled(pod, traits_of(asked))
        if known[1].refused:
            self._found[pod.name] = pod, known[1]
        else:
            self.grant(pod)
        return known[1]

    def grant(self, pod: Pod) -> None:
        """Note that nothing is refused of a pod, whatever was of one of its name."""
        if self._found:
            self._found.pop(pod.name, None)

    def _settled(self, pod: Pod, traits: PodTraits) -> Settled:
        space = self._namespaces.get(pod.metadata.namespace)
        of_space = space.metadata.labels if space else None
        return settle_claims(self._policy, pod.metadata.namespace, of_space, traits, pod.spec.priority, self._classify)

    def findings(self) -> Iterator[Finding]:
        """One for each claim that is refused to a namespace."""
        found = self._found.values()
        yield from refusals(
            Refused(pod.metadata.namespace, pod.metadata.created_at, pod.name, out.team, out.refused)
            for pod, out in found
        )


def traits_of(asked: Asked) -> PodTraits:
    """Traits that tell of a pod's purpose. The class may be an annotation too; the label wins."""
    meta, spec = asked.pod.metadata, asked.pod.spec
    key = labels.WORKLOAD_CLASS[0]
    explicit = {key: bounds.quote_value(meta.annotations[key])} if key in meta.annotations else {}
    return PodTraits(
        labels={**explicit, **meta.labels},
        images=_beginning(c.image for c in spec.containers),
        words=_beginning(word for c in spec.containers for word in _words(c)),
        owner_kind=meta.owner.kind if meta.owner else "",
        gpus=asked.gpu.count if asked.gpu else 0,
        memory=whole_units(asked.request.get("memory", 0)),  # type: ignore[arg-type]
    )


def _beginning(words: Iterable[str]) -> tuple[str, ...]:
    """Words up to so many characters in all."""
    found: list[str] = []
    left = bounds.WORDS
    for word in words:
        if left <= 0:
            break
        found.append(word[:left])
        left -= len(word) + 1
    return tuple(found)


def _words(container: Container) -> tuple[str, ...]:
    return (*container.command, *container.args)

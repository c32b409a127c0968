"""Claimants: the pods of one read with their claims settled, each once, and what was refused of them."""

from collections.abc import Iterator, Mapping

from pilotlight.codec.kubernetes.companions import Namespace
from pilotlight.codec.kubernetes.typed_objects import Pod
from pilotlight.facts.demand.settled_claims import Refused, Settled, refusals, settle_claims
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import Classifier, Finding, PodTraits

_NO_SPACES: Mapping[str, Namespace] = {}


class Claimants:
    """Settles what pods claim by the policy and by the labels of their namespaces."""

    def __init__(self, policy: Policy, classify: Classifier, namespaces: Mapping[str, Namespace] = _NO_SPACES) -> None:
        self._policy, self._classify, self._namespaces = policy, classify, namespaces
        self._found: dict[str, tuple[Pod, Settled]] = {}

    def settle(self, pod: Pod, traits: PodTraits) -> Settled:
        """A pod's claims as they count."""
        known = self._found.get(pod.name)
        if known is not None and known[0] is pod:
            return known[1]
        space = self._namespaces.get(pod.metadata.namespace)
        of_space = space.metadata.labels if space else None
        out = settle_claims(self._policy, pod.metadata.namespace, of_space, traits, pod.spec.priority, self._classify)
        self._found[pod.name] = pod, out
        return out

    def findings(self) -> Iterator[Finding]:
        """One for each claim that is refused to a namespace."""
        found = self._found.values()
        yield from refusals(
            Refused(pod.metadata.namespace, pod.metadata.created_at, pod.name, out.team, out.refused)
            for pod, out in found
        )

"""Reads of the Events that tell of a pod's image pulls, pod by pod."""

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import NAMESPACES
from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
from pilotlight.codec.kubernetes.pull_events import MOST_EVENTS, PULLED, PulledEvents, pull_of
from pilotlight.errors import Forbidden
from pilotlight.facts.capacity import BoundPod
from pilotlight.facts.nodes.first_work import Pull

_EVENTS = typed_json.decoder(PulledEvents)


def pulls(api: Api, pods: Sequence[BoundPod]) -> Mapping[str, Pull]:
    """What became of the pulls for these pods, by uid. An account that may not list Events learns of none."""
    found: dict[str, Pull] = {}
    for pod in pods:
        about = f"involvedObject.uid={pod.uid},reason={PULLED}"
        path = f"{NAMESPACES}/{quote(pod.namespace)}/events"
        try:
            told = api.get(path, _EVENTS, fieldSelector=about, limit=str(MOST_EVENTS)).items
        except (Forbidden, Missing):
            return {}
        if (pull := pull_of(told)) is not None:
            found[pod.uid] = pull
    return found

"""Notices of a virtual machine's end by its own metadata server: read from inside, seconds after the cloud decides.

Google Cloud: ``instance/preempted`` and ``instance/maintenance-event``
(https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys). Azure: scheduled events
(https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events), read as where they are posted.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

from pilotlight.adapters.http import Broken, HttpAnswer, fetch
from pilotlight.codec.events import azure
from pilotlight.codec.events.envelope import Envelope, parse
from pilotlight.errors import BadEvent, Unavailable
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.units import Seconds

GCP = "http://metadata.google.internal"
AZURE = "http://169.254.169.254"

ASK_S: Seconds = 5.0
"""An answer takes no longer; Azure's first one may take two minutes, and is asked for again until then."""

HOST_S: Seconds = 3600.0
"""A host with GPUs is mended about an hour after it is announced."""

_API = {"events": "2020-07-01", "name": "2021-02-01"}


class MetadataNotices(Protocol):
    """Notices about the machine that asks."""

    def look(self, now: datetime) -> tuple[InterruptionNotice, ...]:
        """Those that stand now. Raises ``Unavailable`` where the server does not answer, or nothing readable."""
        ...


class GcpMetadata:
    """Google Cloud's server. A preempted machine is there for ``notice_s`` more: 30 s, or what its node pool says."""

    def __init__(self, cluster: str, notice_s: Seconds = 30.0, server: str = GCP) -> None:
        self._cluster, self._notice_s, self._server = cluster, notice_s, server
        self._name = self._number = ""
        self._since: dict[str, datetime] = {}

    def look(self, now: datetime) -> tuple[InterruptionNotice, ...]:
        """A preemption, and the end of its host; what only moves it is none."""
        self._name = self._name or self._ask("name")
        self._number = self._number or self._ask("id")
        found: list[InterruptionNotice] = []
        if self._ask("preempted").upper() == "TRUE":
            found.append(self._notice("spot-interruption", "terminate", now, self._notice_s))
        if self._ask("maintenance-event").upper() == "TERMINATE_ON_HOST_MAINTENANCE":
            found.append(self._notice("scheduled-change", "terminate", now, HOST_S))
        return tuple(found)

    def _notice(self, kind: str, action: str, now: datetime, left_s: Seconds) -> InterruptionNotice:
        since = self._since.setdefault(kind, now)
        return InterruptionNotice(
            cluster=self._cluster,
            instance=self._name,
            kind=kind,  # type: ignore[arg-type]
            cloud="gcp",
            action=action,
            identity=f"{self._number}/{kind}",
            at=since,
            deadline=since + timedelta(seconds=left_s),
        )

    def _ask(self, key: str) -> str:
        url = f"{self._server}/computeMetadata/v1/instance/{key}"
        return _text(_asked(url, {"Metadata-Flavor": "Google"}))


class AzureMetadata:
    """Azure's server: its document names machines of the whole group, of which only this one is told."""

    def __init__(self, cluster: str, server: str = AZURE) -> None:
        self._cluster, self._server = cluster, server
        self._name = ""

    def look(self, now: datetime) -> tuple[InterruptionNotice, ...]:
        """Every scheduled event of this machine."""
        asked = {"Metadata": "true"}
        if not self._name:
            url = f"{self._server}/metadata/instance/compute/name?api-version={_API['name']}&format=text"
            self._name = _text(_asked(url, asked))
        answer = _asked(f"{self._server}/metadata/scheduledevents?api-version={_API['events']}", asked)
        try:
            document = parse(answer.body)
            events = document["Events"] if isinstance(document, dict) else None
            if not isinstance(events, list):
                raise BadEvent("is no list", "Events")
            found = [azure.read(Envelope(data=each, cluster=self._cluster, at=now, path="Events")) for each in events]
        except (BadEvent, KeyError) as error:
            raise Unavailable(f"the metadata server's scheduled events cannot be read: {error}") from None
        return tuple(
            one
            for each in found
            for one in (each if isinstance(each, list) else [each])
            if isinstance(one, InterruptionNotice) and one.instance == self._name
        )


def _asked(url: str, headers: Mapping[str, str]) -> HttpAnswer:
    try:
        answer = fetch(url, ASK_S, headers=headers)
    except Broken as broken:
        raise Unavailable(f"no metadata server at {url}: {broken}; is this a machine of that cloud?") from None
    if answer.status != 200:
        raise Unavailable(f"the metadata server answers {answer.status} to {url}")
    return answer


def _text(answer: HttpAnswer) -> str:
    return answer.body.decode("utf-8", "replace").strip()

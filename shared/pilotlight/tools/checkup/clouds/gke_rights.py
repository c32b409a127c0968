"""Rights of an account in a GKE cluster's project, asked in one call: those it lacks, and those it should not have.

Resource Manager answers for the project. A condition on the groups' names holds where Compute Engine tells a group's
type to IAM, and is not asked about here. IAM compares how a name begins: by ``gke-prod-`` groups of a cluster prod-eu
may be changed too.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.pools.gke import cluster_at
from pilotlight.adapters.pools.gke.google_rest import READ_S, GoogleRest
from pilotlight.errors import PilotlightError
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.units import count_of

RESOURCE_MANAGER = "https://cloudresourcemanager.googleapis.com"
LOOK: Mapping[str, str] = {
    "container.clusters.get": "node pools are not seen",
    "container.clusters.connect": "the cluster is not reached by its DNS name",
    "compute.instanceGroupManagers.get": "node pools' groups are not seen",
    "compute.instanceGroupManagers.list": "instances of a group are not seen",
    "compute.instances.list": "the age of an instance is not known",
    "compute.advice.capacity": "where spot is soon taken is learnt from your own nodes alone",
    "compute.advice.capacityHistory": "what spot costs is the price file's",
    "compute.reservations.list": "what a reservation has left is not known, and nothing is bought on one",
    "compute.zoneOperations.get": "a change that was refused late is taken for done until the next look",
}
"""Rights of every look, each with what goes without it."""
ACT: Mapping[str, str] = {"compute.instanceGroupManagers.update": "nothing is bought and nothing given back"}
TOO_MUCH = ("compute.instances.create", "compute.instances.delete", "compute.instanceGroupManagers.delete")
"""Rights of instanceAdmin, which reach instances beside the groups."""
FIX = "give its account the roles of the guide: pilotlight show docs/guides/gke.md"
NARROW = "take instanceAdmin and its like from the account; run doctor as Pilotlight's, not as a person"
ASK = "gcloud services enable cloudresourcemanager.googleapis.com, then again"


class _Granted(msgspec.Struct, frozen=True):
    permissions: tuple[str, ...] = ()


def gke_rights(where: str, environ: Mapping[str, str], *, acts: bool) -> Iterator[Check]:
    """A check of each right of the account that is missing, or too much; one where all is well."""
    cluster = cluster_at(where)
    if not cluster:
        return
    wanted = {**LOOK, **(ACT if acts else {})}
    try:
        granted = _granted(cluster.split("/")[1], environ, [*wanted, *TOO_MUCH])
    except PilotlightError as error:
        yield _check("unknown", f"rights could not be asked: {str(error)[:160]}", ASK)
        return
    found = [
        _check("fault" if right in ACT else "warning", f"may not {right}: {without}", FIX)
        for right, without in wanted.items()
        if right not in granted
    ]
    if over := [right for right in TOO_MUCH if right in granted]:
        found.append(_check("warning", f"may {' and '.join(over)}, which nothing here needs", NARROW))
    yield from found or [_check("ok", f"may do what is asked of Google, and no more: {count_of(len(wanted), 'right')}")]


def _granted(project: str, environ: Mapping[str, str], rights: Sequence[str]) -> tuple[str, ...]:
    url = environ.get("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDRESOURCEMANAGER", "") or RESOURCE_MANAGER
    api = GoogleRest(url, GoogleToken(file=bool(environ.get("GOOGLE_APPLICATION_CREDENTIALS"))), environ)
    body = msgspec.json.encode({"permissions": rights})
    with Deadline(READ_S) as deadline:
        return api.ask(deadline, "POST", f"/v1/projects/{project}:testIamPermissions", _Granted, body).permissions


def _check(verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="right-gke", subject="rights at Google", verdict=verdict, what=what, fix=fix)

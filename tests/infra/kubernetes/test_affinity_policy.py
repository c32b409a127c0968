"""The admission policy that narrows GPU pods: valid, a replay's rule, and what a real control plane makes of it."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

import celpy
import kubernetes_validate
import msgspec
import pytest
from cel import value_of
from celpy.adapter import json_to_cel
from manifests import ROOT, Json
from real_api import real_api

from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.decide.offers.offerings import offerings
from pilotlight.errors import PilotlightError
from pilotlight.facts.capacity import Offering
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.policy import Policy
from pilotlight.tools.manifests.affinity_policy import affinity_policy
from pilotlight.tools.replay.placement_shaping import Affinity
from pilotlight.tools.replay.run import catalog_pools
from pilotlight.tools.replay.traces.trace_job import Job

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
SETTLES_S = 30
"""A policy reaches the API server within seconds."""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The replay's five types."""
    path = ROOT / "data" / "catalogs" / "replay.yaml"
    return read_catalog(path.read_bytes(), path.name)


@pytest.fixture(scope="module")
def offered(catalog: Catalog) -> tuple[Offering, ...]:
    """Each of them, on demand."""
    return offerings(Policy(version=1, pools=catalog_pools(catalog, "on-demand")), catalog)[0]


def test_it_is_valid_and_harms_nobody(offered: tuple[Offering, ...]) -> None:
    """Its fields are those of Kubernetes 1.36; it ignores its failures, has no parameter, and asks for an opt-in."""
    policy, binding = affinity_policy(offered)
    for each in (policy, binding):
        kubernetes_validate.validate(each, "1.36", strict=True)
    assert policy["spec"]["failurePolicy"] == "Ignore"
    assert "paramKind" not in policy["spec"]
    selector = binding["spec"]["matchResources"]["namespaceSelector"]
    assert selector == {"matchLabels": {"pilotlight.dev/placement": "affinity"}}


ASKED: dict[str, tuple[int, tuple[str, ...]]] = {
    "one GPU": (1, ()),
    "one V100 or A100": (1, ("V100", "A100")),
    "one A100": (1, ("A100",)),
    "four GPUs": (4, ()),
    "eight GPUs": (8, ()),
}


@pytest.mark.parametrize(("gpus", "models"), ASKED.values(), ids=ASKED.keys())
def test_its_rule_is_that_of_a_replay(
    gpus: int, models: tuple[str, ...], catalog: Catalog, offered: tuple[Offering, ...]
) -> None:
    """The types that its expressions come to are those that a replay with affinity narrows such a job to."""
    spec = affinity_policy(offered)[0]["spec"]
    variables = celpy.celtypes.MapType({})
    given: Json = {"gpus": gpus, "models": list(models)}
    for each in spec["variables"]:
        name = each["name"]
        found = json_to_cel(given[name]) if name in given else value_of(each["expression"], {"variables": variables})
        variables[celpy.celtypes.StringType(name)] = found
    wanted = tuple(map(str, variables["wanted"]))
    job = Job(job_id="j", submit_s=0, duration_s=1, gpus=gpus, models=models)
    assert sorted(wanted) == sorted(Affinity(catalog, "on-demand").types_of(job))


def test_a_name_never_ends_its_string(offered: tuple[Offering, ...]) -> None:
    """A type called like an expression stays a name."""
    odd = msgspec.structs.replace(offered[0], instance_type="x'}] + [{'type': 'y")
    types = affinity_policy([odd])[0]["spec"]["variables"][0]["expression"]
    assert [str(row["type"]) for row in value_of(types)] == [odd.instance_type]


@pytest.fixture
def live(offered: tuple[Offering, ...]) -> Iterator[tuple[Api, str]]:
    """A control plane with the policy, under a name of the run's own, and a namespace that opted in."""
    api, name = real_api(), f"pilotlight-test-{uuid.uuid4().hex[:8]}"
    policy, binding = affinity_policy(offered)
    opt_in = {name: "affinity"}
    policy = {**policy, "metadata": {"name": name}}
    chosen = {"policyName": name, "matchResources": {"namespaceSelector": {"matchLabels": opt_in}}}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": opt_in}}
    made = {
        f"{ADMISSION}/mutatingadmissionpolicies": policy,
        f"{ADMISSION}/mutatingadmissionpolicybindings": {**binding, "metadata": {"name": name}, "spec": chosen},
        "/api/v1/namespaces": space,
    }
    try:
        for path, each in made.items():
            api.ask("POST", path, NOTHING, each)
        ends = time.monotonic() + SETTLES_S
        while terms_of(api, name) is None and time.monotonic() < ends:
            time.sleep(0.2)
        yield api, name
    finally:
        for path in made:
            api.ask("DELETE", f"{path}/{name}", NOTHING)


def terms_of(api: Api, space: str, gpus: int = 1, **spec: Any) -> list[Json] | None:
    """The terms of a pod's required node affinity as the API server would keep it: a dry run."""
    limits = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "c", "image": "busybox", "resources": {"limits": limits}}
    pod = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, "spec": {"containers": [container], **spec}}
    try:
        kept = api.ask("POST", f"/api/v1/namespaces/{space}/pods?dryRun=All", ANY, pod)
    except PilotlightError:
        return None
    node = kept["spec"].get("affinity", {}).get("nodeAffinity", {})
    found: list[Json] | None = node.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
    return found


def required(*terms: Json) -> Json:
    """A pod's own required node affinity."""
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.cluster
def test_a_control_plane_narrows_pods(live: tuple[Api, str]) -> None:
    """Ours is in every term beside the pod's own; who names a GPU, or has a term of fields, stays as it is."""
    api, space = live
    cheap = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g4dn.xlarge"]}
    zones = [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]} for zone in "ab"]
    assert terms_of(api, space) == [{"matchExpressions": [cheap]}]
    both = required(*({"matchExpressions": [zone]} for zone in zones))
    assert terms_of(api, space, affinity=both) == [{"matchExpressions": [zone, cheap]} for zone in zones]
    assert terms_of(api, space, gpus=16) is None
    assert terms_of(api, space, nodeSelector={"pilotlight.dev/gpu-model": "A100"}) is None
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    assert terms_of(api, space, affinity=required(fields)) == [fields]

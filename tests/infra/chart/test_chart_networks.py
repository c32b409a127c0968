"""The chart where clusters differ: who answers names, who may run as whom, and what a proxy and a drain need."""

from functools import cache
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from helm import ROOT, Json, needs_helm, objects_of, rendered
from manifests import VERSIONS, strictly

from pilotlight.adapters.pools.gke.queue import NAMESPACE, REQUESTS, TEMPLATES
from pilotlight.tools.install.cloud_users import bindings

pytestmark = needs_helm

ON: Json = {"enabled": True}
IMAGE = {"image": {"repository": "registry.example.com/pilotlight"}}
PROXY = {"ports": [{"protocol": "TCP", "port": 3128}]}
GIVEN: Json = {
    **IMAGE,
    "policy": "version: 1\npools: {a: {instance_type: g4dn.xlarge, on_silence: hand-back}}\n",
    "pod": {"priorityClassName": "system-cluster-critical"},
    "podDisruptionBudget": ON,
    "openshift": ON,
    "networkPolicy": {"egress": [PROXY]},
    "settings": {"HTTPS_PROXY": "http://proxy:3128"},
}


@cache
def made(given: bool) -> tuple[Json, ...]:
    """The chart's objects, plain or with all of these values."""
    plain, all_ = rendered(IMAGE, GIVEN)
    return tuple(objects_of(all_ if given else plain))


def pods(given: bool) -> list[Json]:
    """Its pods: the Deployment's and those of CronJobs."""
    found = [each["spec"]["template"]["spec"] for each in made(given) if each["kind"] == "Deployment"]
    jobs = [each["spec"]["jobTemplate"]["spec"] for each in made(given) if each["kind"] == "CronJob"]
    return found + [job["template"]["spec"] for job in jobs]


def lets(rules: list[Json], address: str, namespace: str, port: int) -> bool:
    """Whether a rule lets UDP out to an address, or to a pod of a namespace, on that port."""

    def fits(peer: Json) -> bool:
        block: Any = peer.get("ipBlock", {}).get("cidr")
        names = peer.get("namespaceSelector", {}).get("matchLabels", {}).values()
        inside = bool(block) and bool(address) and ip_address(address) in ip_network(block)
        return inside or (bool(namespace) and namespace in names)

    return any(
        {"protocol": "UDP", "port": port} in rule.get("ports", ()) and ("to" not in rule or any(map(fits, rule["to"])))
        for rule in rules
    )


NAMES = {
    "CoreDNS": ("10.0.0.7", "kube-system", 53),
    "Cloud DNS": ("169.254.169.254", "", 53),
    "NodeLocal DNSCache": ("169.254.20.10", "", 53),
    "a node of EKS Auto Mode": ("172.20.0.10", "", 53),
    "OpenShift": ("", "openshift-dns", 5353),
}


@pytest.mark.parametrize(("address", "namespace", "port"), NAMES.values(), ids=NAMES)
def test_names_are_asked_for_wherever_a_cluster_answers_them(address: str, namespace: str, port: int) -> None:
    """The home resolves its cloud on each of them."""
    [policy] = [each for each in made(given=False) if each["kind"] == "NetworkPolicy"]
    assert lets(policy["spec"]["egress"], address, namespace, port)


def test_openshift_chooses_who_its_pods_run_as() -> None:
    """No user and no group is asked for, and still none is root; elsewhere each has its number."""
    for pod in pods(given=True):
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & context.keys()
    assert {pod["securityContext"]["runAsUser"] for pod in pods(given=False)} == {65532}


def test_further_values_arrive() -> None:
    """Its priority, a drain that waits, a proxy and the way to it; each object is valid."""
    assert {pod["priorityClassName"] for pod in pods(given=True)} == {"system-cluster-critical"}
    kinds = {each["kind"]: each for each in made(given=True)}
    assert kinds["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 0
    assert PROXY in kinds["NetworkPolicy"]["spec"]["egress"]
    settings = [each["data"] for each in made(given=True) if each["metadata"]["name"] == "pilotlight-settings"]
    assert settings[0]["HTTPS_PROXY"] == "http://proxy:3128"
    assert "PodDisruptionBudget" not in {each["kind"] for each in made(given=False)}
    for each in made(given=True):
        strictly(each, VERSIONS[-1])


SOLD_BY = ["advisor", "civo:LON1/c-1", "asg:eu-west-1/prod", "gke:acme/europe-west4-a/prod", "karpenter"]


def test_pools_are_whoever_sells_nodes_to_a_home_and_nothing_else() -> None:
    """Each address that the code opens is taken, and reaches the home; a name that is none is refused."""
    *taken, refused = rendered(*({**IMAGE, "pools": pools} for pools in (*SOLD_BY, "karpenter2")))
    told = [one["data"]["PILOTLIGHT_POOLS"] for each in taken for one in objects_of(each) if settings_of(one)]
    assert told == SOLD_BY
    assert "does not match pattern" in refused["error"]
    adapters = {path.stem for path in (ROOT / "shared/pilotlight/adapters/pools").iterdir()}
    assert {one.partition(":")[0] for one in SOLD_BY} == adapters - {"__init__", "__pycache__", "world"}


def settings_of(one: Json) -> bool:
    """Whether an object holds the home's settings."""
    return (one["kind"], one["metadata"]["name"]) == ("ConfigMap", "pilotlight-settings")


def test_the_queue_is_asked_where_its_roles_stand() -> None:
    """The namespace of the adapter's requests is that of both Roles, of whom they are bound to, of what `connect` binds
    and of the release; into any other the chart is not installed."""
    asked = {**IMAGE, "gke": {"queue": True}}
    [here] = rendered(asked)
    [elsewhere] = rendered(asked, namespace="ml")
    ours = [one for one in objects_of(here) if "gke-queue" in one["metadata"]["name"]]
    bound = list(bindings(["a@acme"], ["b@acme"], ["gke-queue"]))[2:]
    places = {one["metadata"]["namespace"] for one in (*ours, *bound)}
    places |= {each["namespace"] for one in ours for each in one.get("subjects", ())}
    assert (len(ours), len(bound)) == (4, 2)
    assert places == {NAMESPACE}
    assert all(f"/namespaces/{NAMESPACE}/" in place for place in (REQUESTS, TEMPLATES))
    assert "--namespace pilotlight" in elsewhere["error"]

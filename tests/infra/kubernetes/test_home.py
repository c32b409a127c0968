"""The home inside a cluster: its policy is one, its settings are settings, its pods may do little."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from manifests import objects

from pilotlight import settings
from pilotlight.adapters.aws_api.credentials import CONTAINER_HOST, LOCAL_HOSTS
from pilotlight.adapters.outbox.local import LARGEST, UNTAKEN
from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy

HOME = Path(__file__).resolve().parents[3] / "infra" / "kubernetes" / "home"


def _objects(kind: str) -> list[dict[str, Any]]:
    return [each for path in sorted(HOME.glob("*.yaml")) for each in objects(path) if each["kind"] == kind]


def _data(name: str) -> dict[str, str]:
    return next(dict(each["data"]) for each in _objects("ConfigMap") if each["metadata"]["name"] == name)


def _pods() -> list[dict[str, Any]]:
    """The pod of the Deployment and those of the CronJobs."""
    jobs = [each["spec"]["jobTemplate"]["spec"] for each in _objects("CronJob")]
    return [each["template"]["spec"] for each in [*(d["spec"] for d in _objects("Deployment")), *jobs]]


def test_the_policy_and_its_prices_are_read() -> None:
    """What lies in the ConfigMap is a policy, and the price file it names prices its pool."""
    files = _data("pilotlight-policy")
    policy = read_policy(files["policy.yaml"].encode(), "policy.yaml")
    catalog = read_catalog(files[policy.prices.files[0]].encode(), "prices.yaml")
    assert {pool.instance_type for pool in policy.pools.values()} <= set(catalog.instance_types)


def test_the_settings_are_settings() -> None:
    """Every variable is one that is read, and together they are a deployment that changes nothing."""
    given = _data("pilotlight-settings")
    assert all(name in (settings.__doc__ or "") for name in given)
    found = settings.Settings.from_environ(given)
    assert (found.mode, found.pools, found.api, found.cluster_name) == ("advise", "advisor", "in-cluster", "ml")


@pytest.mark.parametrize("pod", _pods(), ids=lambda pod: pod["containers"][0]["name"])
def test_a_pod_is_restricted(pod: dict[str, Any]) -> None:
    """No root, no capability, no writable image; little memory; a token of the API only where it is used."""
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert {"requests", "limits"} == container["resources"].keys()
    assert pod["automountServiceAccountToken"] is (container["name"] == "pilotlight")


def test_letters_take_no_room_of_the_state() -> None:
    """State and outbox lie on volumes of their own; the outbox's is larger than it can become."""
    given = _data("pilotlight-settings")
    (pod,) = (pod for pod in _pods() if pod["containers"][0]["name"] == "pilotlight")
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    state = mounts[given["PILOTLIGHT_STATE"].removeprefix("sqlite:").rpartition("/")[0]]
    assert mounts[given["PILOTLIGHT_OUTBOX"].removeprefix("local:")] != state
    claims = {each["metadata"]["name"]: each["spec"]["resources"] for each in _objects("PersistentVolumeClaim")}
    room = int(claims["pilotlight-outbox"]["requests"]["storage"].removesuffix("Mi")) * 2**20
    assert room > 3 * (UNTAKEN + 1) * LARGEST


def _extras_that_lack(dockerfile: str) -> set[str]:
    """Extras that a setting may ask for and the image has not; monitor has an image of its own, for nodes with GPUs."""
    project = tomllib.loads((HOME.parents[2] / "pyproject.toml").read_text())["project"]
    line = next(line for line in dockerfile.splitlines() if "'pilotlight[" in line)
    asked = set(line.partition("[")[2].partition("]")[0].split(","))
    return (set(project["optional-dependencies"]) - {"dev", "functions", "monitor"}) ^ asked


def test_the_image_has_what_every_address_needs() -> None:
    """Every extra that a setting may ask for is in the image, to whose file system nothing can be added later."""
    assert _extras_that_lack((HOME / "Dockerfile").read_text()) == set()


@pytest.mark.parametrize("extra", ["aws", "gcp"])
def test_an_image_without_a_clouds_extra_goes_red(extra: str) -> None:
    """The fault put back: dynamodb:, eks: and firestore: need theirs."""
    planted = (HOME / "Dockerfile").read_text().replace(f",{extra}", "").replace(f"[{extra},", "[")
    assert _extras_that_lack(planted) == {extra}


def _ways_out(policy: dict[str, Any]) -> set[tuple[str, int]]:
    """Addresses and ports that a network policy lets out to by address."""
    return {
        (to["ipBlock"]["cidr"].partition("/")[0], port["port"])
        for rule in policy["spec"]["egress"]
        for to in rule.get("to", ())
        if "ipBlock" in to
        for port in rule["ports"]
    }


def _asked_who_it_is() -> set[tuple[str, int]]:
    of_the_container_service = CONTAINER_HOST.rpartition("/")[2]
    asked = {host for host in LOCAL_HOSTS if host[:4] in ("169.", "fd00")} - {of_the_container_service}
    return {(host, 80) for host in asked} | {("169.254.169.254", 80), ("169.254.169.252", 988)}


def test_the_home_may_ask_its_cloud_who_it_is() -> None:
    """The network policy lets out what credentials are asked of: metadata servers, and EKS Pod Identity."""
    (policy,) = _objects("NetworkPolicy")
    assert _ways_out(policy) == _asked_who_it_is()


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.170.23"])
def test_a_policy_that_blocks_the_metadata_server_goes_red(address: str) -> None:
    """The fault put back: without this way out nobody could say who the pod is."""
    (policy,) = _objects("NetworkPolicy")
    for rule in policy["spec"]["egress"]:
        rule["to"] = [to for to in rule.get("to", ()) if to.get("ipBlock", {}).get("cidr") != f"{address}/32"]
    assert {where for where, _ in _asked_who_it_is() - _ways_out(policy)} == {address}


def test_one_image_runs_everywhere() -> None:
    """Deployment and CronJobs name the same image."""
    assert len({pod["containers"][0]["image"] for pod in _pods()}) == 1


def test_secrets_are_named_and_never_written() -> None:
    """No manifest of the home is a Secret; the Deployment refers to one by name."""
    assert _objects("Secret") == []
    (pod,) = (pod for pod in _pods() if pod["containers"][0]["name"] == "pilotlight")
    assert {"secretRef": {"name": "pilotlight"}} in pod["containers"][0]["envFrom"]


def test_the_dockerfile_is_slim_and_has_no_root() -> None:
    """A slim base pinned by version and digest, packages of the lock, and a user that is a number."""
    lines = (HOME / "Dockerfile").read_text().splitlines()
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"python:${PYTHON}"}
    (base,) = (line.removeprefix("ARG PYTHON=") for line in lines if line.startswith("ARG PYTHON="))
    assert re.fullmatch(r"3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", base)
    assert "USER 65532:65532" in lines
    assert any("--require-hashes" in line and "requirements.lock" in line for line in lines)
    assert any("--no-index --find-links /wheels" in line for line in lines)


def test_the_image_gets_all_that_the_wheel_is_made_of() -> None:
    """Every file or folder that pyproject.toml puts into the wheel is copied into the build."""
    build = tomllib.loads((HOME.parents[2] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    copied = [line.split()[1] for line in (HOME / "Dockerfile").read_text().splitlines() if line.startswith("COPY ")]
    needed = [*build["packages"], *build["force-include"]]
    assert [path for path in needed if not any(f"{path}/".startswith(f"{root}/") for root in copied)] == []

"""Our account on the control plane that KUBECONFIG names: manifests under a name of the run's own, and taken away.

An account that is there stays as it is.
"""

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from manifests import HERE
from msgspec.structs import replace

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.typed_objects import Metadata
from pilotlight.errors import BadRequest, Forbidden
from pilotlight.tools.install import connect_account
from pilotlight.tools.install.admission_policy import limit_to

LIVE = [
    pytest.mark.cluster,
    pytest.mark.skipif(not os.environ.get("KUBECONFIG"), reason="KUBECONFIG names no control plane to run against"),
]
"""Marks of tests that need one."""

ANY: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict)
CORE, RBAC, ADMISSION = "/api/v1", "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
PLURALS = {
    "Namespace": f"{CORE}/namespaces",
    "Node": f"{CORE}/nodes",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
OURS = {"key": "pilotlight.dev/draining", "value": "marked", "effect": "NoSchedule"}
WAIT_S = 300
"""Roles and policies reach every server within seconds; a slow machine gets more."""


class Given:
    """The account a token is for."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def access(self, *, anew: bool = False) -> Access:
        """The same, always."""
        return self._access


class Site:
    """A control plane with our account under a name of its own."""

    def __init__(self) -> None:
        source = of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0]))
        self.admin, self.mark = Api(source), f"pl-{uuid.uuid4().hex[:8]}"
        self._access, self._made, self._nodes = source.access(), list[str](), 0

    def apply(self, name: str) -> None:
        """The objects of a manifest, named after the run."""
        for each in self.objects(name):
            self.make(each)

    def objects(self, name: str) -> list[dict[str, Any]]:
        """The objects of a manifest, named after the run and limited to the pools ``lit`` and ``other``."""
        text = re.sub(r"\bpilotlight\b(?!\.dev)", self.mark, (HERE / name).read_text("utf-8"))
        found = list(yaml.safe_load_all(text))
        for each in found:
            each["metadata"]["labels"] = {connect_account.LABEL: connect_account.ACCOUNT}
            for rule in each.get("rules", ()):  # What a role names is what the code asks for.
                rule |= {"resourceNames": [n.replace(self.mark, "pilotlight") for n in rule.get("resourceNames", ())]}
        limit_to(found, ("other", "lit"))
        return found

    def make(self, value: dict[str, Any]) -> None:
        """Create one object, to be taken away."""
        namespace = value["metadata"].get("namespace")
        plural = PLURALS.get(value["kind"]) or f"{CORE}/namespaces/{namespace}/{value['kind'].lower()}s"
        eventually(lambda: self.admin.ask("POST", plural, NOTHING, value), Forbidden)
        self._made.append(f"{plural}/{value['metadata']['name']}")

    def account(self, name: str = "") -> Api:
        """The API server as an account of ours sees it, by a token as connect makes it."""
        where = f"{CORE}/namespaces/{self.mark}/serviceaccounts/{name or self.mark}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = self.admin.ask("POST", where, ANY, body)["status"]["token"]
        return Api(Given(replace(self._access, token=token, certificate="", key="")))

    def node(self, pool: str) -> str:
        """A new node of a pool."""
        self._nodes += 1
        name = f"{self.mark}-{pool}-{self._nodes}"
        labels = {"pilotlight.dev/pool": pool}
        self.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}})
        return name

    def pod(self, name: str, **annotations: str) -> Metadata:
        """A pod that waits for ever."""
        keys = {key.replace("_", "/"): value for key, value in annotations.items()}
        meta = {"name": name, "namespace": self.mark, "annotations": keys}
        secure = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True}
        container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "securityContext": secure}
        spec = {
            "containers": [container],
            "nodeSelector": {"pilotlight.dev/test": "nowhere"},
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        }
        self.make({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        path = f"{CORE}/namespaces/{self.mark}/pods/{name}"
        return self.admin.get(path, msgspec.json.Decoder(_Named)).metadata

    def clear(self) -> None:
        """Take away what was made, the last first, and wait until all of it is gone."""
        for path in reversed(self._made):
            with suppress(Missing):
                self.admin.ask("DELETE", path, NOTHING)
        for path in self._made:
            eventually(partial(self._gone, path), AssertionError)

    def _gone(self, path: str) -> None:
        with suppress(Missing):
            self.admin.get(path, NOTHING)
            raise AssertionError(f"{path} is still there")


class _Named(msgspec.Struct):
    metadata: Metadata


def eventually(do: Callable[[], Any], *problems: type[BaseException]) -> Any:
    """What ``do`` returns once it raises none of these problems any more."""
    ends = time.monotonic() + WAIT_S
    while True:
        try:
            return do()
        except problems:
            if time.monotonic() > ends:
                raise
            time.sleep(0.5)


def until_refused(api: Api, path: str, change: Callable[[str], dict[str, Any]]) -> None:
    """Wait until the admission policy is seen to act: until it refuses this, which is never the same twice, in earnest
    or not: nothing is written."""

    def once() -> None:
        with pytest.raises(BadRequest, match="ValidatingAdmissionPolicy"):
            api.ask("PATCH", f"{path}?dryRun=All", NOTHING, change(uuid.uuid4().hex), MERGE_PATCH)

    eventually(once, Forbidden, pytest.fail.Exception)


@contextmanager
def a_site() -> Iterator[Site]:
    """A control plane with our namespace and account, without rights."""
    found = Site()
    try:
        found.apply("namespace.yaml")
        yield found
    finally:
        found.clear()


@contextmanager
def an_acting_account() -> Iterator[tuple[Site, Api]]:
    """The account with observe and act, limited to the pools ``lit`` and ``other``."""
    with a_site() as site:
        site.apply("admission/nodes.yaml")
        site.apply("admission/tolerations.yaml")
        site.apply("admission/homes.yaml")
        site.apply("admission/evictions.yaml")
        site.apply("rbac/observe.yaml")
        site.apply("rbac/act.yaml")
        account = site.account()
        path = f"{CORE}/nodes/{site.node('other')}"
        eventually(lambda: account.get(path, NOTHING), Forbidden)
        until_refused(account, path, lambda value: {"metadata": {"labels": {"probe": value}}})
        probe = site.pod("probe")
        path = f"{CORE}/namespaces/{site.mark}/pods/{probe.name}"
        until_refused(account, path, lambda value: {"metadata": {"labels": {"probe": value}}})
        yield site, account

"""A real API server that KUBECONFIG names: objects applied as `kubectl apply --server-side` does, strictly."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from pilotlight.adapters.cluster.kubernetes.access.addresses import of_file
from pilotlight.adapters.cluster.kubernetes.transport import NOTHING, Api, Missing

Json = dict[str, Any]


def real_api() -> Api:
    """The control plane of the test run; skips where there is none."""
    if not os.environ.get("KUBECONFIG"):
        pytest.skip("KUBECONFIG names no control plane to run against")
    return Api(of_file(Path(os.environ["KUBECONFIG"].split(os.pathsep)[0])))


def applied(api: Api, each: Json, *, dry_run: bool = False) -> None:
    """Server-side, where a field that the server does not know is an error."""
    meta, (group, _, version) = each["metadata"], each["apiVersion"].rpartition("/")
    kind = each["kind"].lower()
    plural = (
        kind + "s" if not kind.endswith(("s", "y", "x")) else kind[:-1] + "ies" if kind.endswith("y") else kind + "es"
    )
    plural = {"resourcequota": "resourcequotas"}.get(kind, plural)
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    where = f"/namespaces/{meta['namespace']}" if "namespace" in meta else ""
    query = "?fieldManager=pilotlight-test&force=true&fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
    api.ask("PATCH", f"{root}{where}/{plural}/{meta['name']}{query}", NOTHING, each, "application/apply-patch+yaml")


def taken(api: Api, each: Json) -> None:
    """As a dry run. A CRD that has just come is served within seconds."""
    ends = time.monotonic() + 20
    while True:
        try:
            return applied(api, each, dry_run=True)
        except Missing:
            if time.monotonic() > ends:
                raise
            time.sleep(0.3)

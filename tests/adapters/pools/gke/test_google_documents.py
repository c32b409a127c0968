"""Google's documents as the oracle: what they know passes, anything else is a fault of whoever wrote it."""

import json

import pytest
from google_documents import COMPUTE, CONTAINER, Unknown, called, check

GROUP = "/compute/v1/projects/acme-ml/zones/europe-west4-a/instanceGroupManagers/gke-prod-grp"
REQUEST = "0b0e3b8e-7a0e-5c39-8f0c-111111111111"


def test_a_request_that_a_document_knows_is_named_by_it() -> None:
    """Its method, what its path and query hold, and the schema of its answer."""
    call, asked = called(
        COMPUTE, "POST", f"{GROUP}/createInstances?requestId={REQUEST}", b'{"instances":[{"name":"a"}]}'
    )
    assert (call.method, call.answers) == ("compute.instanceGroupManagers.createInstances", "Operation")
    assert (call.path["zone"], call.query, asked) == (
        "europe-west4-a", {"requestId": REQUEST}, {"instances": [{"name": "a"}]},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "target", "body"),
    [
        pytest.param("POST", f"{GROUP}/createInstance", {}, id="a verb that is not there"),
        pytest.param("GET", f"{GROUP}/listManagedInstances", None, id="a list by GET that is asked by POST"),
        pytest.param("GET", f"{GROUP}?size=1", None, id="a parameter that is not there"),
        pytest.param("GET", f"{GROUP.replace('acme-ml', 'Acme ML')}", None, id="a project that cannot be one"),
        pytest.param("POST", f"{GROUP}/createInstances?requestId=r-1", {}, id="an id of a request that is no UUID"),
        pytest.param("POST", f"{GROUP}/createInstances", {"names": ["a"]}, id="a field that is not there"),
        pytest.param("POST", f"{GROUP}/createInstances", {"instances": "a"}, id="a text for a list"),
        pytest.param("POST", f"{GROUP}/createInstances", {"instances": [{"status": "NEW"}]}, id="no such value"),
        pytest.param("GET", GROUP, {"a": 1}, id="a body where none is taken"),
    ],
)
def test_a_request_that_a_document_does_not_know_is_refused(verb: str, target: str, body: object) -> None:
    """Verb, path, query, body and enums are checked."""
    with pytest.raises((Unknown, ValueError)):
        called(COMPUTE, verb, target, json.dumps(body).encode() if body is not None else b"")


@pytest.mark.parametrize(
    ("document", "schema", "value"),
    [
        pytest.param(COMPUTE, "Operation", {"status": "FINISHED"}, id="a state that no operation has"),
        pytest.param(COMPUTE, "ManagedInstance", {"id": "-"}, id="an id that is no number"),
        pytest.param(COMPUTE, "InstanceGroupManager", {"targetSize": "3"}, id="a size as a text"),
        pytest.param(CONTAINER, "Cluster", {"nodePools": [{"nodes": 1}]}, id="a field that no node pool has"),
        pytest.param(CONTAINER, "NodePool", {"status": "UPGRADING"}, id="a state that no node pool has"),
    ],
)
def test_an_answer_is_checked_as_well(document: str, schema: str, value: object) -> None:
    """The local server cannot say what Google never would."""
    with pytest.raises((Unknown, ValueError)):
        check(document, schema, value)

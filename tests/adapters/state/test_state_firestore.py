"""What only the Firestore state has: refusals of a service on the network, answers that are lost, and tokens."""

import json
from typing import Any
from uuid import uuid4

import pytest
import urllib3
from answering import Answer, answering
from hypothesis import given
from hypothesis import strategies as st

from fleet import free_port
from pilotlight.adapters import google_token
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.state.firestore import FirestoreState, document_id, key_of
from pilotlight.errors import Conflict, Forbidden, PilotlightError, StoreFault, Throttled, Unavailable
from pilotlight.ports.state import ABSENT
from pilotlight.world.world_clock import VirtualClock

KEYS = st.text("a.b/+-0é~", min_size=1, max_size=12)


@given(first=KEYS, second=KEYS)
def test_ids_of_documents_are_keys_in_other_words(first: str, second: str) -> None:
    """An id leads back to its key, holds no slash, is no path of dots, and sorts and begins as its key does."""
    one, other = document_id(first), document_id(second)
    assert key_of(one) == first
    assert "/" not in one
    assert one not in (".", "..")
    assert (one < other) == (first < second)
    assert one.startswith(other) == first.startswith(second)


def store(host: str, clock: VirtualClock) -> FirestoreState:
    """A collection of its own behind a host."""
    return FirestoreState("demo", clock, database="(default)", collection=f"state-{uuid4()}", emulator=host)


def refusal(status: int, name: str, message: str = "no") -> Answer:
    """An error as Firestore tells it."""
    return status, {"error": {"code": status, "status": name, "message": message}}


REFUSALS = {
    "a conflict between writers": (refusal(409, "ABORTED"), Conflict),
    "a precondition": (refusal(400, "FAILED_PRECONDITION"), Conflict),
    "a document that is there": (refusal(409, "ALREADY_EXISTS"), Conflict),
    "a document that is gone": (refusal(404, "NOT_FOUND", "No document to update: x"), Conflict),
    "too many requests": (refusal(429, "RESOURCE_EXHAUSTED"), Throttled),
    "no credentials": (refusal(401, "UNAUTHENTICATED"), StoreFault),
    "no rights": (refusal(403, "PERMISSION_DENIED"), StoreFault),
    "no database": (refusal(404, "NOT_FOUND", "The database x does not exist"), StoreFault),
    "our own mistake": (refusal(400, "INVALID_ARGUMENT"), StoreFault),
    "an outage": (refusal(503, "UNAVAILABLE"), Unavailable),
    "a refusal in a list": ((403, [refusal(403, "PERMISSION_DENIED")[1]]), StoreFault),
}


@pytest.mark.parametrize(("answer", "kind"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_are_told_by_what_to_do_next(answer: Answer, kind: type[PilotlightError], clock: VirtualClock) -> None:
    """Each of Firestore's refusals is one of our errors and names the key."""
    with answering(lambda *_: answer) as host, pytest.raises(kind, match="memory/c"):
        store(host, clock).put("memory/c", b"")


def test_a_service_that_does_not_answer_is_unavailable(clock: VirtualClock) -> None:
    """After its attempts, a refused connection is an error to come again after."""
    with pytest.raises(Unavailable):
        store(f"127.0.0.1:{free_port()}", clock).get("memory/c")


def test_a_write_whose_answer_is_lost_is_not_a_conflict(firestore_emulator: str, clock: VirtualClock) -> None:
    """The request is sent again, meets its own write, and tells that write's version."""
    direct, lost = urllib3.PoolManager(), list[str]()

    def forward(path: str, body: bytes, headers: dict[str, str]) -> Answer | None:
        answer = direct.request("POST", f"http://{firestore_emulator}{path}", body=body, headers=headers)
        if ":commit" in path and not lost:
            lost.append(path)
            return None
        return answer.status, json.loads(answer.data)

    with answering(forward) as host:
        state = store(host, clock)
        first = state.put("lease/c", b"1", if_version=ABSENT)
        lost.clear()
        second = state.put("lease/c", b"2", if_version=first)
        assert state.get("lease/c") == (b"2", second)
    assert lost


def test_a_document_of_somebody_else_is_refused_by_name(firestore_emulator: str, clock: VirtualClock) -> None:
    """A collection that is not Pilotlight's is named, not decoded."""
    collection = f"state-{uuid4()}"
    state = FirestoreState("demo", clock, database="(default)", collection=collection, emulator=firestore_emulator)
    url = f"http://{firestore_emulator}/v1/projects/demo/databases/(default)/documents/{collection}?documentId=theirs"
    theirs: dict[str, Any] = {"fields": {"name": {"stringValue": "x"}}}
    urllib3.PoolManager().request("POST", url, json=theirs, headers={"Authorization": "Bearer owner"})
    with pytest.raises(StoreFault, match="theirs is not Pilotlight's"):
        state.get("theirs")


def test_a_token_of_the_metadata_server_is_kept_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two requests cost one token; one that ends soon is asked for again."""
    asked: list[str] = []

    def token(path: str, body: bytes, headers: dict[str, str]) -> Answer:
        asked.append(headers["Metadata-Flavor"])
        return 200, {"access_token": f"t{len(asked)}", "expires_in": 3600 if len(asked) > 1 else 60, "token_type": "B"}

    with answering(token) as host:
        monkeypatch.setattr(google_token, "METADATA", f"http://{host}/token")
        tokens = GoogleToken()
        shown = [tokens.header()["Authorization"] for _ in range(3)]
    assert shown == ["Bearer t1", "Bearer t2", "Bearer t2"]
    assert asked == ["Google", "Google"]


def test_without_any_credentials_the_next_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A credentials file that is not there is Forbidden, with what to run."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    with pytest.raises(Forbidden, match=r"nowhere.*gcloud auth"):
        GoogleToken(file=True).header()

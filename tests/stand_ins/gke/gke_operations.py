"""Operations of Compute Engine at the local project: what a change answers, and a second one of its request."""

from typing import Any

from gke_answers import Refused
from google_documents import Call


class Operations:
    """A part of the project. ``ends`` is the error that the operations of a verb end with; ``later`` operations are
    not DONE when they answer; ``fails_with`` is a status and its words, without a list of errors."""

    def __init__(self) -> None:
        self.ends: dict[str, list[dict[str, str]]] = {}
        self.later = False
        self.fails_with: tuple[int, str] | None = None
        self.requests: dict[str, tuple[Any, dict[str, Any]]] = {}
        self.operations: dict[str, dict[str, Any]] = {}

    def _known(self, call: Call, asked: Any) -> dict[str, Any] | None:
        """The operation of a request that came before: a second one is ignored."""
        known = self.requests.get(call.query.get("requestId", ""))
        if known is not None and known[0] != asked:
            raise Refused(400, "invalid", "the request id was used for another request")
        return known[1] if known is not None else None

    def _operation(self, call: Call, asked: Any, ends: list[dict[str, str]] | None = None) -> dict[str, Any]:
        name = f"operation-{len(self.operations) + 1}"
        done = {"name": name, "status": "DONE", "progress": 100, "operationType": call.method}
        if self.fails_with:
            done |= {"httpErrorStatusCode": self.fails_with[0], "httpErrorMessage": self.fails_with[1]}
        self.operations[name] = done | ({"error": {"errors": ends}} if ends else {})
        answer = {"name": name, "status": "RUNNING", "progress": 0} if self.later else self.operations[name]
        if request := call.query.get("requestId"):
            self.requests[request] = asked, answer
        return answer

    def _compute_zoneOperations_get(self, call: Call, asked: Any) -> dict[str, Any]:
        return self.operations[call.path["operation"]]

"""Google's own documents of Compute Engine and GKE, as the oracle of requests and answers.

They lie in google-api-python-client, a package of the tests. Verb, path, query, body and enums are checked; a field
that a document does not know, or a field of an answer that is sent, is a fault of whoever wrote it.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from uuid import UUID

COMPUTE, CONTAINER, PROJECTS = "compute.v1", "container.v1", "cloudresourcemanager.v1"
BETA = "compute.beta"
WHOLE = {"int32": 32, "uint32": 32, "int64": 64, "uint64": 64}
OUTPUT_ONLY = re.compile(r"\A\s*(\[?Output[ -]Only\]?)", re.IGNORECASE)


class Unknown(Exception):
    """A request or an answer that Google's document does not allow."""


class Call(NamedTuple):
    """A request as its document names it, with what its path and query hold."""

    document: str
    method: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    answers: str


class _Method(NamedTuple):
    verb: str
    path: re.Pattern[str]
    name: str
    known: Mapping[str, Any]
    request: str
    answers: str


@cache
def document(name: str) -> Mapping[str, Any]:
    """A document by its file's name."""
    found = find_spec("googleapiclient")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("google-api-python-client is not installed: run make setup")
    folder = Path(found.submodule_search_locations[0]) / "discovery_cache" / "documents"
    read: Mapping[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return read


@cache
def methods(name: str) -> tuple[_Method, ...]:
    """The methods of a document, those with the longest paths first."""
    read = document(name)

    def every(resources: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        for one in resources.values():
            yield from one.get("methods", {}).values()
            yield from every(one.get("resources", {}))

    found = [
        _Method(
            one["httpMethod"],
            re.compile(_pattern(f"/{read['servicePath']}{one.get('flatPath') or one['path']}")),
            one["id"],
            {**read["parameters"], **one.get("parameters", {})},
            one.get("request", {}).get("$ref", ""),
            one.get("response", {}).get("$ref", ""),
        )
        for one in every(read["resources"])
    ]
    return tuple(sorted(found, key=lambda one: -len(one.path.pattern)))


def _pattern(path: str) -> str:
    parts = re.split(r"\{(\w+)\}", path)
    return "".join(f"(?P<{part}>[^/:]+)" if n % 2 else re.escape(part) for n, part in enumerate(parts))


def called(name: str, verb: str, target: str, body: bytes) -> tuple[Call, Any]:
    """The call that a request makes, and its body. Raises ``Unknown``."""
    where = urlsplit(target)
    for method in methods(name):
        found = method.path.fullmatch(where.path)
        if found is None or method.verb != verb:
            continue
        query = parse_qsl(where.query, keep_blank_values=True)
        path = {key: unquote(value) for key, value in found.groupdict().items()}
        for key, value in (*path.items(), *query):
            _parameter(method, key, value, in_path=key in path)
        if len(dict(query)) < len(query) and not all(method.known[key].get("repeated") for key, _ in query):
            raise Unknown(f"{method.name}: a query names one thing twice: {where.query}")
        if bool(body) > bool(method.request):
            raise Unknown(f"{method.name} takes no body")
        asked = json.loads(body) if body else None
        if method.request and asked is not None:
            check(name, method.request, asked, method.name, sent=True)
        return Call(name, method.name, path, dict(query), method.answers), asked
    raise Unknown(f"{name} has no {verb} {where.path}")


def _parameter(method: _Method, key: str, value: str, *, in_path: bool) -> None:
    known = method.known.get(key)
    if known is None:
        if in_path:  # The parts of a name: "projectsId" of "projects/*/locations/*".
            return
        raise Unknown(f"{method.name} has no parameter {key}")
    if known.get("deprecated"):
        raise Unknown(f"{method.name}: {key} is deprecated")
    if "pattern" in known and not re.fullmatch(known["pattern"], value):
        raise Unknown(f"{method.name}: {key} is {value!r}, not {known['pattern']}")
    if "enum" in known and value not in known["enum"]:
        raise Unknown(f"{method.name}: {key} is {value!r}, not one of {known['enum']}")
    if known["type"] == "boolean" and value not in ("true", "false"):
        raise Unknown(f"{method.name}: {key} is {value!r}, neither true nor false")
    if key == "requestId" and not (str(UUID(value)) == value and UUID(value).int):
        raise Unknown(f"{method.name}: requestId {value!r} is no UUID")


def check(name: str, ref: str, value: Any, where: str = "", *, sent: bool = False) -> None:
    """See that a value is as a schema of a document says. Raises ``Unknown`` with the path to what is not."""
    _value(name, {"$ref": ref}, value, where or ref, sent)


def _value(name: str, schema: Mapping[str, Any], value: Any, where: str, sent: bool) -> None:
    if "$ref" in schema:
        schema = document(name)["schemas"][schema["$ref"]]
    kind = schema.get("type", "any")
    if kind == "object":
        _object(name, schema, value, where, sent)
    elif kind == "array":
        if not isinstance(value, list):
            raise Unknown(f"{where} is no list: {value!r}")
        for n, one in enumerate(value):
            _value(name, schema["items"], one, f"{where}[{n}]", sent)
    elif kind != "any":
        _plain(schema, kind, value, where)


def _object(name: str, schema: Mapping[str, Any], value: Any, where: str, sent: bool) -> None:
    if not isinstance(value, dict):
        raise Unknown(f"{where} is no object: {value!r}")
    known, more = schema.get("properties", {}), schema.get("additionalProperties")
    for key, one in value.items():
        inner = known.get(key, more)
        if inner is None:
            raise Unknown(f"{where} has no field {key}")
        if sent and (inner.get("readOnly") or OUTPUT_ONLY.match(inner.get("description", ""))):
            raise Unknown(f"{where}.{key} is of answers alone")
        _value(name, inner, one, f"{where}.{key}", sent)


def _plain(schema: Mapping[str, Any], kind: str, value: Any, where: str) -> None:
    wanted = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}[kind]
    if not isinstance(value, wanted) or (kind != "boolean" and isinstance(value, bool)):  # type: ignore[arg-type]
        raise Unknown(f"{where} is no {kind}: {value!r}")
    if "enum" in schema and value not in schema["enum"]:
        raise Unknown(f"{where} is {value!r}, not one of {schema['enum']}")
    form = schema.get("format", "")
    if form in WHOLE and not -(2 ** WHOLE[form]) < int(value) < 2 ** WHOLE[form]:
        raise Unknown(f"{where} is no {form}: {value!r}")
    if form == "byte":
        base64.b64decode(value, validate=True)
    if form in ("google-datetime", "date-time") and datetime.fromisoformat(value).tzinfo is None:
        raise Unknown(f"{where} has no zone: {value!r}")

"""Answers of AWS's query interfaces: XML as typed values, and errors as ours."""

from typing import Any, TypeVar
from xml.etree.ElementTree import Element, ParseError, fromstring

from pilotlight import typed_json
from pilotlight.adapters.aws_api import refusals
from pilotlight.adapters.aws_api.signing import Keys
from pilotlight.adapters.http import HttpAnswer
from pilotlight.errors import PilotlightError, Unavailable

T = TypeVar("T")


def read_answer(action: str, answer: HttpAnswer, shape: type[T], lost: type[Unavailable]) -> T:
    """Body of an answer, parsed. Raises ``lost`` where it cannot be read."""
    try:
        root = fromstring(answer.body)
        if _named(root) != f"{action}Response":
            raise ValueError(f"it is a {_named(root)[:40]}")
        result = next((child for child in root if _named(child) == f"{action}Result"), root)
        found = _tree(result)
        return typed_json.convert({} if found == "" else found, shape, strict=False)
    except (ParseError, ValueError, RecursionError) as error:
        raise lost(f"AWS's answer to {action} cannot be read: {error}"[:300]) from None


def problem(action: str, answer: HttpAnswer, keys: Keys, lost: type[Unavailable]) -> PilotlightError:
    """Error of an answer that refuses. Words that may quote the request are left out where it was about the
    credential."""
    code, message = _error(answer.body)
    return refusals.problem(action, answer.status, code, message, keys.hide, lost)


def _error(body: bytes) -> tuple[str, str]:
    try:
        root = fromstring(body)
    except ParseError:
        return "", ""
    found = {_named(each): (each.text or "") for each in root.iter()}
    return found.get("Code", ""), found.get("Message", "")


def _named(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _tree(element: Element) -> Any:
    """A structure as a mapping, a list as a list, all else as text. What is empty is left out of a structure."""
    children = list(element)
    if not children:
        return (element.text or "").strip()
    if all(_named(child) in ("member", "item") for child in children):
        return [_tree(child) for child in children]
    found = {_named(child): _tree(child) for child in children}
    return {name: value for name, value in found.items() if value != ""}

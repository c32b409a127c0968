"""What AWS's query interfaces answer: XML as typed values, and errors as ours."""

from typing import Any, TypeVar
from xml.parsers import expat

import msgspec

from pilotlight.adapters.aws_api import refusals
from pilotlight.adapters.aws_api.signing import Keys
from pilotlight.adapters.http import HttpAnswer
from pilotlight.errors import PilotlightError, Throttled, Unavailable

T = TypeVar("T")


def read_answer(action: str, answer: HttpAnswer, shape: type[T], lost: type[Unavailable]) -> T:
    """What an answer says. Raises ``lost`` where it cannot be read."""
    try:
        root = _parsed(answer.body)[0]
        if root.name != f"{action}Response":
            raise ValueError(f"it is a {root.name[:40]}")
        result = next((child for child in root.children if child.name == f"{action}Result"), root)
        found = _tree(result)
        return msgspec.convert({} if found == "" else found, shape, strict=False)
    except (expat.ExpatError, ValueError, RecursionError) as error:
        raise lost(f"AWS's answer to {action} cannot be read: {error}"[:300]) from None


def problem(action: str, answer: HttpAnswer, keys: Keys, lost: type[Unavailable]) -> PilotlightError:
    """What an answer refuses with. Words that may quote the request are left out where it was about the credential."""
    code, message = _error(answer.body)
    said = f"AWS answers {action} with {answer.status}" + (f": {code[:80]}" if code else "")
    if message and code not in refusals.FORBIDDEN:
        said += f" ({' '.join(keys.hidden(message).split())[:240]})"
    known = refusals.refusal(code, said)
    if known is not None:
        return known
    if answer.status == 429:
        return Throttled(said, refusals.PAUSE_S)
    if answer.status >= 500 or answer.status < 400 or code == "IdempotentCallInProgress":
        return lost(said)
    return refusals.other(said)


def _error(body: bytes) -> tuple[str, str]:
    try:
        found = {each.name: each.text for each in _parsed(body)}
    except expat.ExpatError:
        return "", ""
    return found.get("Code", ""), found.get("Message", "")


class _Element:
    """One of XML: its name without its namespace, the text before its first child, and its children.

    ElementTree's own would do; its import costs a cold start more than reading what AWS answers.
    """

    __slots__ = ("children", "name", "text")

    def __init__(self, name: str) -> None:
        self.name, self.text = name.rpartition("}")[2], ""
        self.children: list[_Element] = []


def _parsed(body: bytes) -> list[_Element]:
    """Every element of a document in the order they begin: the root first. Raises ``ExpatError``."""
    found: list[_Element] = []
    open_ = [_Element("")]

    def start(name: str, _: object) -> None:
        made = _Element(name)
        open_[-1].children.append(made)
        found.append(made)
        open_.append(made)

    def text(words: str) -> None:
        if not open_[-1].children:
            open_[-1].text += words

    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler, parser.CharacterDataHandler = start, text
    parser.EndElementHandler = lambda _: open_.pop()
    parser.Parse(body, True)
    return found


def _tree(element: _Element) -> Any:
    """A structure as a mapping, a list as a list, all else as text. What is empty is left out of a structure."""
    if not element.children:
        return element.text.strip()
    if all(child.name in ("member", "item") for child in element.children):
        return [_tree(child) for child in element.children]
    found = {child.name: _tree(child) for child in element.children}
    return {name: value for name, value in found.items() if value != ""}

"""The policy file (YAML) -> ``Policy``. All problems are found at once, each one line that names file and key."""

from typing import Any

import msgspec

from pilotlight import typed_json
from pilotlight.codec.json_text import read_json
from pilotlight.codec.policy_rules import contradictions
from pilotlight.codec.policy_values import DROPPED, Problems, read_value
from pilotlight.errors import BadPolicy
from pilotlight.facts.policy import Policy


def read_policy(text: str | bytes, where: str) -> Policy:
    """The policy in ``text``; ``where`` is what its errors call it. Raises ``BadPolicy`` with all problems found."""
    policy, problems = examine_policy(text, where)
    if problems or policy is None:
        raise BadPolicy(problems)
    return policy


def examine_policy(text: str | bytes, where: str) -> tuple[Policy | None, list[str]]:
    """The policy as far as it can be read, and all problems found. Raises ``BadPolicy`` where the text is no YAML."""
    problems: Problems = []
    clean = read_value(_document(text, where), msgspec.inspect.type_info(Policy), "", problems)
    policy = None
    if clean is not DROPPED:
        try:
            policy = typed_json.convert(clean, Policy)
        except msgspec.ValidationError as error:
            if not problems:
                problems.append(("", str(error)))
    if policy is not None:
        wrong = [path for path, _ in problems]
        problems += [(at, why) for at, why in contradictions(policy) if not _holds(at, wrong)]
    return policy, [f"{where}: {path}: {reason}" if path else f"{where}: {reason}" for path, reason in problems]


def _holds(path: str, wrong: list[str]) -> bool:
    """True where a value below a path could not be read: without it nothing true can be said of the whole."""
    return any(at.startswith((f"{path}.", f"{path}[")) for at in wrong)


def _document(text: str | bytes, where: str) -> Any:
    document: Any = read_json(text)
    if document is None:
        from pilotlight.codec.policy_yaml import read_document

        document = read_document(text, where)
    if document is None:
        raise BadPolicy([f"{where}: is empty: begin with version: 1"])
    return document

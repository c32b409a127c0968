"""The policy file (YAML) -> ``Policy``. All problems are found at once, each one line that names file and key."""

from typing import Any

import msgspec
import yaml

from pilotlight import typed_json
from pilotlight.codec import bounded_yaml
from pilotlight.codec.policy_rules import contradictions
from pilotlight.codec.policy_values import DROPPED, Problems, read_value
from pilotlight.errors import BadPolicy
from pilotlight.facts.policy import Policy


class _Loader(bounded_yaml.SafeLoader):  # type: ignore[misc]
    """YAML as people mean it: a key twice is an error, and 18:00 is text, not base-60 arithmetic."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key_node.tag != "tag:yaml.org,2002:merge" and isinstance(key, str):
                if key in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"key {key} twice", problem_mark=key_node.start_mark
                    )
                seen.add(key)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NUMBERS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
"""Numbers stay text until the key they stand under says what they are: no price passes through a binary float."""


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
    try:
        document = bounded_yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadPolicy(
            [f"{where}{line}: not YAML: {error.problem or error.context}; mend that line, or one above it"]
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise BadPolicy(
            [f"{where}: not YAML: it holds what is no UTF-8 text, or is nested too deep; save it as UTF-8"]
        ) from None
    if document is None:
        raise BadPolicy([f"{where}: is empty: begin with version: 1"])
    return document

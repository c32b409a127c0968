"""The text of a policy in YAML -> tables, lists and text."""

from typing import Any

import yaml

from pilotlight.codec import bounded_yaml
from pilotlight.errors import BadPolicy


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


def read_document(text: str | bytes, where: str) -> Any:
    """What a policy's text holds; ``where`` is what its errors call it. Raises ``BadPolicy`` where it is no YAML."""
    try:
        return bounded_yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = f" line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise BadPolicy(
            [f"{where}{line}: not YAML: {error.problem or error.context}; mend that line, or one above it"]
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise BadPolicy(
            [f"{where}: not YAML: it holds what is no UTF-8 text, or is nested too deep; save it as UTF-8"]
        ) from None

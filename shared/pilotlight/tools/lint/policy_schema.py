"""The JSON Schema of the policy file, which editors check it by as it is written."""

from typing import Any

import msgspec

from pilotlight.facts.policy import Policy

SCHEMA_ID = "https://pilotlight.dev/schemas/policy-1.json"


def policy_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the policy file, for editors."""
    (reference,), components = msgspec.json.schema_components(
        [Policy], schema_hook=lambda _: {"description": "any value"}, ref_template="#/$defs/{name}"
    )
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID, "title": "Pilotlight policy"}
    schema: dict[str, Any] = _as_written({**head, **reference, "$defs": components})
    return schema


def _as_written(node: Any) -> Any:
    """The schema of what stands in the file: some numbers may be text there ("10m"), see ``facts.policy``."""
    if isinstance(node, list):
        return [_as_written(item) for item in node]
    if not isinstance(node, dict):
        return node
    clean = {key: _as_written(value) for key, value in node.items() if key != "written"}
    return {**clean, "type": node["written"]} if "written" in node else clean

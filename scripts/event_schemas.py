"""events/schemas/: the JSON Schema of every message that travels, written from the code."""

import inspect
import json
from pathlib import Path

import msgspec

from pilotlight.facts.messages import TYPES

SCHEMAS = Path(__file__).resolve().parents[1] / "events" / "schemas"


def main() -> None:
    """Write every schema."""
    SCHEMAS.mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        (SCHEMAS / name).write_text(text)
        print(SCHEMAS / name)


def schemas() -> dict[str, str]:
    """The text of every schema file, by its name: ``dev.pilotlight.pod.pending.v1`` is ``pod-pending``."""
    out: dict[str, str] = {}
    for event_type, shape in TYPES.items():
        [reference], components = msgspec.json.schema_components(
            [shape], schema_hook=_anything, ref_template="#/$defs/{name}"
        )
        own = components.pop(reference["$ref"].rpartition("/")[2])
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"https://pilotlight.dev/schemas/{event_type}.json",
            **own,
            "title": f"data of a CloudEvent of type {event_type}",
            "description": inspect.getdoc(shape),
            **({"$defs": components} if components else {}),
        }
        out[f"{short(event_type)}.schema.json"] = json.dumps(schema, indent=2) + "\n"
    return out


def _anything(shape: type) -> dict[str, object]:
    """A pod inside a message is the sender's: any JSON."""
    if shape is object:
        return {"description": "any JSON"}
    raise NotImplementedError


def short(event_type: str) -> str:
    """A message's name in file names."""
    return event_type.removeprefix("dev.pilotlight.").rpartition(".v")[0].replace(".", "-")


if __name__ == "__main__":
    main()

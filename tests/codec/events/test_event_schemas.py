"""Schemas and samples of our messages against the code, both ways."""

import json
from pathlib import Path

import jsonschema
import pytest

import event_schemas
from pilotlight.facts.messages import TYPES

ROOT = Path(__file__).resolve().parents[3]
EVENTS = ROOT / "events"


def test_schemas_are_those_of_the_code() -> None:
    """Every message has its schema file as the code has it, and there is no other."""
    files = {path.name: path.read_text() for path in (EVENTS / "schemas").iterdir()}
    assert files == event_schemas.schemas(), "run: python scripts/event_schemas.py"


@pytest.mark.parametrize("event_type", TYPES)
def test_every_message_has_a_sample_that_its_schema_takes(event_type: str) -> None:
    """The sample is of the type, and its data is valid."""
    short = event_schemas.short(event_type)
    sample = json.loads((EVENTS / "samples" / "pilotlight" / f"{short.replace('-', '_')}.json").read_text())
    schema = json.loads((EVENTS / "schemas" / f"{short}.schema.json").read_text())
    assert sample["type"] == event_type
    jsonschema.Draft202012Validator(schema).validate(sample["data"])


@pytest.mark.parametrize("event_type", TYPES)
def test_the_schema_refuses_what_the_code_refuses(event_type: str) -> None:
    """A message without its required fields is not valid."""
    schema = json.loads((EVENTS / "schemas" / f"{event_schemas.short(event_type)}.schema.json").read_text())
    assert not jsonschema.Draft202012Validator(schema).is_valid({})


def test_the_table_names_every_message() -> None:
    """The page of who sends and who receives leaves no message out."""
    page = (EVENTS / "README.md").read_text()
    assert [event_type for event_type in TYPES if f"`{event_type}`" not in page] == []

"""PILOTLIGHT_STATE and what it opens."""

from uuid import uuid4

import pytest

from pilotlight.adapters.state.dynamodb import DynamoDBState, create_table
from pilotlight.adapters.state.firestore import FirestoreState
from pilotlight.errors import BadInput
from pilotlight.settings import Settings
from pilotlight.wiring import app


def test_firestore_is_opened_by_project_database_and_collection(firestore_emulator: str) -> None:
    """The emulator's address comes from the environment that Google's tools use."""
    where = f"firestore:demo/(default)/state-{uuid4()}"
    settings = Settings.of({"PILOTLIGHT_STATE": where, "FIRESTORE_EMULATOR_HOST": firestore_emulator})
    state = app(settings).state
    assert isinstance(state, FirestoreState)
    state.put("memory/c", b"1")
    assert app(settings).state.get("memory/c") is not None


def test_dynamodb_is_opened_by_its_table(dynamodb_server: str) -> None:
    """The endpoint comes from the environment that Amazon's tools use; a table that is not there is named."""
    table = f"state-{uuid4()}"
    settings = Settings.of({"PILOTLIGHT_STATE": f"dynamodb:{table}", "AWS_ENDPOINT_URL": dynamodb_server})
    state = app(settings).state
    assert isinstance(state, DynamoDBState)
    with pytest.raises(BadInput, match=f"{table}.*no such table"):
        state.get("memory/c")
    create_table(state.client, table)
    state.put("memory/c", b"1")
    assert app(settings).state.get("memory/c") is not None


@pytest.mark.parametrize("where", ["firestore:demo", "firestore:demo/x", "firestore:a/b/c/d"])
def test_a_firestore_without_its_three_parts_is_refused(where: str) -> None:
    """The refusal shows how to write it."""
    with pytest.raises(BadInput, match="name project, database and collection"):
        _ = app(Settings.of({"PILOTLIGHT_STATE": where})).state


@pytest.mark.parametrize("where", ["firestore:", "dynamodb:", "redis:x"])
def test_a_state_there_is_not_is_refused(where: str) -> None:
    """The refusal names every kind there is."""
    with pytest.raises(BadInput, match=r"use memory: or sqlite:PATH, dynamodb:TABLE, firestore:PROJECT"):
        _ = app(Settings.of({"PILOTLIGHT_STATE": where})).state

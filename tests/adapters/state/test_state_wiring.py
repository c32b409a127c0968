"""PILOTLIGHT_STATE and what it opens."""

import os
import subprocess
import sys
from uuid import uuid4

import pytest

from pilotlight.adapters.state.counted import CountedState
from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.adapters.state.firestore import FirestoreState
from pilotlight.errors import BadInput, StoreFault
from pilotlight.settings import Settings
from pilotlight.tools.install.state_store import create_table
from pilotlight.wiring import app


def test_firestore_is_opened_by_project_database_and_collection(firestore_emulator: str) -> None:
    """The emulator's address comes from the environment that Google's tools use."""
    where = f"firestore:demo/(default)/state-{uuid4()}"
    settings = Settings.from_environ({"PILOTLIGHT_STATE": where, "FIRESTORE_EMULATOR_HOST": firestore_emulator})
    state = app(settings).state
    assert isinstance(state, CountedState)
    assert isinstance(state.inner, FirestoreState)
    state.put("memory/c", b"1")
    assert app(settings).state.get("memory/c") is not None


def test_firestore_costs_a_cold_start_no_library_of_google(firestore_emulator: str) -> None:
    """Opening, writing and reading imports neither Google's packages nor gRPC (ADR 6)."""
    code = (
        "import os, sys; from pilotlight.settings import Settings; from pilotlight.wiring import app; "
        "state = app(Settings.from_environ(os.environ)).state; state.put('memory/c', b'1'); state.get('memory/c'); "
        "print({'google.auth', 'google.api_core', 'grpc', 'boto3', 'requests'} & sys.modules.keys())"
    )
    environ = {
        **os.environ,
        "PILOTLIGHT_STATE": f"firestore:demo/(default)/state-{uuid4()}",
        "FIRESTORE_EMULATOR_HOST": firestore_emulator,
    }
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_dynamodb_is_opened_by_its_table(dynamodb_server: str) -> None:
    """The endpoint comes from the environment that Amazon's tools use; a table that is not there is named."""
    table = f"state-{uuid4()}"
    settings = Settings.from_environ({"PILOTLIGHT_STATE": f"dynamodb:{table}", "AWS_ENDPOINT_URL": dynamodb_server})
    state = app(settings).state
    assert isinstance(state, CountedState)
    assert isinstance(state.inner, DynamoDBState)
    with pytest.raises(StoreFault, match=f"{table}.*no such table"):
        state.get("memory/c")
    create_table(state.inner.client, table)
    state.put("memory/c", b"1")
    assert app(settings).state.get("memory/c") is not None


@pytest.mark.parametrize("where", ["firestore:demo", "firestore:demo/x", "firestore:a/b/c/d"])
def test_a_firestore_without_its_three_parts_is_refused(where: str) -> None:
    """The refusal shows how to write it."""
    with pytest.raises(BadInput, match="name project, database and collection"):
        _ = app(Settings.from_environ({"PILOTLIGHT_STATE": where})).state


@pytest.mark.parametrize("where", ["firestore:", "dynamodb:", "redis:x"])
def test_a_state_there_is_not_is_refused(where: str) -> None:
    """The refusal names every kind there is."""
    with pytest.raises(BadInput, match=r"use memory: or sqlite:PATH, dynamodb:TABLE, firestore:PROJECT"):
        _ = app(Settings.from_environ({"PILOTLIGHT_STATE": where})).state

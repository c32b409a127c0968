"""``pilotlight pause`` as a person types it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pilotlight.errors import BadInput
from pilotlight.tools.cli.main import build


def test_a_pause_without_a_reason_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever meets a pause must learn why; nothing is paused by half a command."""
    monkeypatch.setenv("PILOTLIGHT_HOME", str(tmp_path))
    words = ["pause", "--reason", " "]
    with pytest.raises(BadInput, match="--reason is empty"):
        CliRunner().invoke(build(words), words, catch_exceptions=False)
    assert not any(tmp_path.iterdir())

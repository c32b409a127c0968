"""What a wheel holds beside the package: the product works without a checkout."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HELD = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
    "force-include"
]


@pytest.mark.parametrize(
    "folder", ["policies", "events/samples", "examples/cluster", "examples/demo", "data", "functions"]
)
def test_a_wheel_has_what_commands_open(folder: str) -> None:
    """The folder is there, and goes where a default file is looked for."""
    assert any((ROOT / folder).iterdir())
    assert HELD[folder] == f"pilotlight/_defaults/{folder}"

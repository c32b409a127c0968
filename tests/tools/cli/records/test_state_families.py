"""The registry of all families."""

import subprocess
import sys

from pilotlight.tools.cli.records.state_families import TABLES

FAMILIES = """ack advice ailment anomaly approved audit audit-links belief bill bill-file bill-read bill-reading
bill-seen bill-tried burst cap charged chat closed cost cost-from decision event fence flush heard
held-price hold hour hour-mark idle inflight instances instances-gone interruption isolated ladder
lease life look-again mark memory meter metered metering noticed open paid-idle pause pool-use
prices prices-read proof queue reclaim reclaim-look refused rescue rest shadow silent step taken
tick told waiting"""


def test_every_family_is_known_by_its_prefix() -> None:
    """A family that is added or goes is named here too: its records outlive the code."""
    assert list(TABLES) == FAMILIES.split()


def test_the_registry_imports_no_flow() -> None:
    """Looking at the state needs no flow, no adapter and no settings."""
    registry = "pilotlight.tools.cli.records.state_families"
    code = f"import sys, {registry}; print([m for m in sys.modules if m.startswith('pilotlight.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pilotlight.tools.cli.records.state_families" in done.stdout
    for package in ("flow", "adapters", "settings", "cli", "decide"):
        assert f"pilotlight.{package}" not in done.stdout

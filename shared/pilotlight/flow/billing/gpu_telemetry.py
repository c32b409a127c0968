"""GPU telemetry on a grid no finer than its samples: with more steps than samples each step between is a gap."""

from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.ports.cluster import GpuTelemetry
from pilotlight.units import Seconds

STEPS_S: tuple[Seconds, ...] = (60, 120, 300, 600)
"""Steps that are tried, until most have a sample: scrapes are seldom rarer."""


def on_its_grid(telemetry: GpuTelemetry, start_s: float, end_s: float) -> Telemetry:
    """By the finest step that is not sparse; where each is, the gaps are real, and the finest. Raises as ``read``."""
    finest = telemetry.read(start_s, end_s, STEPS_S[0])
    if not finest.sparse():
        return finest
    coarser = (telemetry.read(start_s, end_s, step_s) for step_s in STEPS_S[1:])
    return next((read for read in coarser if not read.sparse()), finest)

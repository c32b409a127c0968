"""Limits of Karpenter's NodePools in a plan: a line each, with both limits, the reason, and a node's dollars."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from pilotlight.facts.decisions import Plan
from pilotlight.facts.money.gates import GateLimit
from pilotlight.tools.cli.printing import json_text
from pilotlight.tools.report.texts.plan_text import Source, lines

NOW = datetime(2026, 11, 28, 8, tzinfo=UTC)
LINES: list[tuple[dict[str, Any], str]] = [
    ({"now": "64", "limit": 24, "usd_a_node": Decimal("4.5"), "why": "room"}, "64 -> 24: room; a node takes $4.50"),
    ({"limit": 0, "why": "no room"}, "none -> 0: no room"),
    ({"now": "24", "limit": 24, "why": "room for 3"}, "24: room for 3"),
    ({"now": "64", "why": "it is static"}, "64 -> left as it is: it is static"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "said"), LINES, ids=["changes", "closes", "stays", "is refused"])
def test_a_line_a_gate(fields: dict[str, Any], said: str) -> None:
    """Its limit now and then; what stays is said once."""
    gate = GateLimit(pool="a100", nodepool="gpu", **fields)
    text = [str(line) for line in lines(Plan(gates=(gate,)), NOW, Source("of", "by"))]
    at = text.index("Limits of Karpenter's NodePools")
    assert text[at + 1] == f"  a100 (NodePool gpu): nvidia.com/gpu {said}"


def test_a_gate_as_json() -> None:
    """Figures by name."""
    gate = GateLimit(pool="a100", nodepool="gpu", now="64", limit=24, usd_a_node=Decimal(384), why="room for 3")
    for part in ('"pool": "a100"', '"now": "64"', '"limit": 24', '"usd_a_node": 384'):
        assert part in json_text(Plan(gates=(gate,)), "number")

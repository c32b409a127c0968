"""The readme's table is that of the run that drew its picture."""

import json

from pages import ROOT

NAMES = {"pilotlight": "Pilotlight", "s0-loop": "a plain loop (s0)", "keda": "KEDA", "always-on": "always on"}
NAMES |= {"cluster-autoscaler": "Cluster Autoscaler", "karpenter": "Karpenter"}


def test_the_readmes_figures_are_those_of_the_week() -> None:
    """Each policy has its line, cheapest first, as docs/images/week.json has it (written by make picture)."""
    rows = sorted(json.loads((ROOT / "docs/images/week.json").read_text()), key=lambda row: float(row["cost_usd"]))
    lines = [
        f"| {NAMES[row['policy']]} | ${row['cost_usd']:,.0f} | {row['x_integral']:.3f}x | "
        f"{row['wait_s']['mean']:,.0f} s | {row['wait_s']['p95']:,.0f} s |"
        for row in rows
    ]
    head = "| policy | dollars | over the lower bound | mean wait | P95 wait |\n|---|---|---|---|---|\n"
    assert head + "\n".join(lines) + "\n" in (ROOT / "README.md").read_text()

"""The figures of the built-in week are those of the run that drew its pictures, and the readme stays short."""

import json
from itertools import combinations

from pages import ROOT

import week_picture

NAMES = {"pilotlight": "Pilotlight", "s0-loop": "a plain loop (s0)", "keda": "KEDA", "always-on": "always on"}
NAMES |= {"cluster-autoscaler": "Cluster Autoscaler", "karpenter": "Karpenter"}
WORDS = 600


def test_the_figures_are_those_of_the_week() -> None:
    """Each policy has its line, cheapest first, as docs/images/week.json has it (written by make picture)."""
    rows = sorted(json.loads((ROOT / "docs/images/week.json").read_text()), key=lambda row: float(row["cost_usd"]))
    lines = [
        f"| {NAMES[row['policy']]} | ${row['cost_usd']:,.0f} | {row['x_integral']:.3f}x | "
        f"{row['wait_s']['mean']:,.0f} s | {row['wait_s']['p95']:,.0f} s |"
        for row in rows
    ]
    head = "| policy | dollars | over the lower bound | mean wait | P95 wait |\n|---|---|---|---|---|\n"
    assert head + "\n".join(lines) + "\n" in (ROOT / "docs" / "replay.md").read_text()
    said = {row["policy"]: (f"paid ${row['cost_usd']:,.0f}", f"{row['wait_s']['mean']:,.0f} s") for row in rows}
    readme = (ROOT / "README.md").read_text()
    ours, peer = said["pilotlight"], said["cluster-autoscaler"]
    assert (
        f"In a simulation of a week of {rows[0]['jobs']:,} GPU jobs, it {ours[0]} with a mean wait of {ours[1]}; "
        f"Cluster Autoscaler {peer[0]} with {peer[1]}." in readme
    )


def test_the_pictures_are_drawn_from_the_week() -> None:
    """Both looks are what `scripts/week_picture.py` draws of docs/images/week.json."""
    for path, drawn in week_picture.pictures().items():
        assert path.read_text("utf-8") == drawn, "run: python scripts/week_picture.py --write"


def test_no_label_of_the_picture_lies_on_another() -> None:
    """Of every policy of the week, beside a curve of five prices and pinned peers, whose figures are invented here."""
    week = json.loads((ROOT / "docs/images/week.json").read_text())
    ours = [
        {**week[0], "value_of_wait": value, "cost_usd": usd, "wait_s": {"mean": wait}}
        for value, usd, wait in ((3, 43800, 62), (10, 44500, 34), (30, 45615, 15), (100, 47000, 7), (300, 49000, 3))
    ]
    peers = [
        {"policy": name, "cost_usd": usd, "wait_s": {"mean": wait}}
        for name, usd, wait in (("karpenter-pinned:0", 43950, 85), ("karpenter-pinned:900", 47900, 50))
    ]
    labels = week_picture.lay(week_picture.points(week, {"ours": ours, "peers": peers})).labels
    assert [pair for pair in combinations(labels, 2) if pair[0].shared_area(pair[1])] == []


def test_the_readme_is_read_in_three_minutes() -> None:
    """It has at most 600 words."""
    assert len((ROOT / "README.md").read_text().split()) <= WORDS


def test_every_page_stands_in_the_index() -> None:
    """docs/README.md links each guide and each other page of docs but the single decisions."""
    index = (ROOT / "docs" / "README.md").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    wanted = [page.as_posix() for page in pages if page.parts[0] != "adr" and page.name != "README.md"]
    assert [page for page in wanted if f"]({page})" not in index] == []

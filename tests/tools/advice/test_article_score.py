"""Article S3's scorer beside ours: golden values I1."""

from decimal import Decimal

import pytest

from pilotlight.tools.advice.article_score import Machine, Workload, article_score

S3_TYPES = {
    "p3.2xlarge": Machine(1, 16, Decimal("3.06")),
    "p3.8xlarge": Machine(4, 64, Decimal("12.24")),
    "p4d.24xlarge": Machine(8, 320, Decimal("32.77")),
    "g4dn.xlarge": Machine(1, 16, Decimal("0.526")),
}

GOLDEN: list[tuple[Workload, str, str]] = [
    ("training", "p4d.24xlarge", "624.962"),
    ("training", "p3.2xlarge", "5.229"),
    ("training", "p3.8xlarge", "83.66"),
    ("training", "g4dn.xlarge", "30.418"),
    ("inference", "g4dn.xlarge", "57.829"),
    ("inference", "p3.2xlarge", "1.709"),
    ("inference", "p4d.24xlarge", "2.384"),
    ("other", "p4d.24xlarge", "78.120"),
    ("other", "p3.8xlarge", "20.915"),
    ("other", "g4dn.xlarge", "30.418"),
]


@pytest.mark.parametrize(("workload", "name", "score"), GOLDEN, ids=[f"{w} {n}" for w, n, _ in GOLDEN])
def test_golden_scores(workload: Workload, name: str, score: str) -> None:
    """Every score of I1 comes out to a thousandth."""
    assert abs(article_score(workload, S3_TYPES[name]) - Decimal(score)) < Decimal("0.001")

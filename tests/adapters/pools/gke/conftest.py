"""A project of GKE for the tests of its pools."""

from collections.abc import Iterator

import pytest
from gke_project import Project, project

from pilotlight.adapters.pools.gke import google_rest
from pilotlight.adapters.pools.gke import pools as gke_pools


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project whose client is not patient."""
    monkeypatch.setattr(google_rest, "PAUSES_S", (0.0, 0.0))
    monkeypatch.setattr(gke_pools, "LOOK_EVERY_S", 0.0)
    with project() as made:
        yield made

"""GKE's pools where a group does not answer: it costs its pool alone, for as long as that lasts."""

from collections import Counter

import pytest
from gke_answers import Refused
from gke_project import Project
from google_documents import Call

from pilotlight.adapters.pools.gke import refusals
from pilotlight.errors import Retry, Unavailable


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_group_that_does_not_answer_costs_its_pool_alone(
    here: Project, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """It is named, closed for now and keeps what it may have; the others go on."""
    monkeypatch.setattr(refusals, "THROTTLED_S", 0.0)
    here.pools.grow("eight", 1)
    (node,) = here.gke.world.nodes
    here.gke.refuses["eight"] = status
    down = here.pool("eight")
    assert down.rules is not None
    assert "group gke-prod-eight-pool-0a1b2c3d-grp in europe-west4-a of node pool eight-pool cannot be" in down.unread
    assert (down.rules.closed, down.rules.silent, down.hidden, down.desired) == (down.unread, True, True, 0)
    for ask in (lambda: here.pools.grow("eight", 2), lambda: here.pools.release("eight", node)):
        with pytest.raises(Retry, match="cannot be read"):
            ask()
    assert here.pools.instance("eight", node) is None
    assert here.pools.grow("one", 1).desired == 1


def test_a_pool_of_which_a_part_may_not_be_read_is_not_waited_for(
    here: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One zone does not answer and the other is refused: that passes by no minutes."""
    here.gke.zones["one"] = ["europe-west4-a", "europe-west4-b"]
    statuses = {"europe-west4-a": 503, "europe-west4-b": 403}

    def refuse(call: Call) -> str:
        if here.gke.base("one") in call.path["instanceGroupManager"]:
            raise Refused(statuses[call.path["zone"]], "no", "no")
        return real(call)

    real = here.gke._pool
    monkeypatch.setattr(here.gke, "_pool", refuse)
    state = here.pool()
    assert (state.hidden, state.rules is not None and state.rules.silent) == (True, False)


def test_a_cloud_of_which_no_group_answers_is_waited_for(here: Project) -> None:
    """That is no state of its pools."""
    here.gke.refuses = dict.fromkeys(here.gke.world.fleet.pools, 503)
    with pytest.raises(Unavailable, match="cannot be read"):
        here.pools.describe()


def test_once_a_group_is_silent_each_other_is_asked_once(here: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many that do not answer take no function's whole time."""
    asked = Counter[str]()
    real = here.gke._pool

    def count(call: Call) -> str:
        asked[call.path["instanceGroupManager"]] += 1
        return real(call)

    monkeypatch.setattr(here.gke, "_pool", count)
    here.gke.refuses = dict.fromkeys(here.gke.world.fleet.pools, 503)
    with pytest.raises(Unavailable):
        here.pools.describe()
    assert sorted(asked.values()) == [*[1] * (len(asked) - 1), 3]

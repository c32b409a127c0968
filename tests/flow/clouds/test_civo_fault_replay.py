"""A morning on Civo whose answers are lost, late, cut, refused or wrong, by seed: what it may never lead to."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from civo_server import CLUSTER, PASSWORD, REGION, TOKEN, Civo, Fault, serving
from fault_replay import Told, deliver, whole_log
from stage import Stage

from pilotlight.adapters import civo_api
from pilotlight.adapters.civo_api import CivoApi
from pilotlight.adapters.pools.civo.pools import CivoPools

SEEDS = range(16)
METHODS = ("GET", "PUT", "DELETE")
LOST: Sequence[Any] = (
    "hang",
    "reset",
    "cut",
    (500, {"status": 500}),
    (500, {"code": "something_new", "reason": f"seen {TOKEN}"}),
    (502, "<html>bad gateway</html>"),
    (429, {}),
    (200, {"id": 7, "count": "two"}),
    (200, "thanks"),
)
"""What may come whether Civo acted or not."""
REFUSED: Sequence[Any] = (
    (500, {"code": "out_of_capacity", "reason": "none left"}),
    (402, {"code": "quota_limit_reached", "reason": "ram_mb"}),
    (409, {"code": "cannot_scale_already_rescaling_cluster"}),
    (409, {"code": "database_quota_lock_failed"}),
    (404, {"code": "something_is_missing", "reason": f"with key {TOKEN}"}),
)
"""What Civo says where it did nothing."""


def _faults(luck: random.Random) -> list[Fault]:
    """A dozen, for calls of each kind."""
    lost = [Fault(luck.choice(LOST), luck.choice(("before", "after")), luck.choice(METHODS)) for _ in range(8)]
    return luck.sample([*lost, *(Fault(luck.choice(REFUSED), "before", luck.choice(METHODS)) for _ in range(4))], 12)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    """What is logged; the client gives an answer up soon."""
    monkeypatch.setattr(civo_api, "WRITE_S", 0.1)
    with whole_log() as handler:
        yield handler


@pytest.mark.parametrize("decrements", [True, False], ids=["counts down", "count stays"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_fault_buys_twice_takes_another_or_tells_a_secret(seed: int, decrements: bool, told: Told) -> None:
    """Three pods get one node each at most, no pod loses its node, none stays lit at last, and no secret is told."""
    stage = Stage()
    civo = Civo(stage.world, decrements=decrements)
    civo.faults = _faults(random.Random(seed))
    said: list[str] = []
    with serving(civo) as url:
        api = CivoApi(TOKEN, REGION, url=url, sleep=lambda _: None)
        stage.deps = replace(stage.deps, pools=CivoPools(api, CLUSTER, civo.ids(), stage.world.clock))
        pods = [stage.submit(name, run_s=60.0 * minutes) for name, minutes in {"a": 10, "b": 20, "c": 60}.items()]
        for minute in range(150):
            stage.wait(60)
            civo.faults = civo.faults if minute < 90 else []
            said += deliver(stage, pods)
    stops = [event["reason"] for event in stage.events("stop")]
    assert (len(stops), set(stops)) == (len(pods), {"done"})
    assert stage.world.launches <= len(pods)
    assert stage.world.nodes == {}
    # Where a deletion leaves the count and lowering it failed too, Civo brings an idle node back, which goes like any.
    assert not decrements or set(stage.world.fleet.desired.values()) == {0}
    assert all(count >= left for count, left in civo.lowered), "Civo had a victim to choose"
    sent = (bytes(message.data).decode() for message in stage.outbox.sent)
    everything = " ".join([*said, *told.said, *sent, json.dumps(stage.log)])
    assert (TOKEN in everything, PASSWORD in everything) == (False, False)

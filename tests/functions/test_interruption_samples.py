"""Every sample of an interruption goes end to end: taken once, accounted for, told; a malformed one is refused."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import Delivery, decode, encode
from pilotlight.facts.capacity import CapacityType
from pilotlight.facts.interruption.interruption import Instance
from pilotlight.facts.messages import Alert, InterruptionNotice, Tick
from pilotlight.facts.policy import Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.settings import Settings
from pilotlight.state_schema.instance_records import INSTANCES
from pilotlight.units import HOUR
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "events" / "samples"
SHELF = ROOT.parent / "shared" / "contracts" / "events"


def _unpacked(path: Path) -> tuple[bytes, dict[str, str]]:
    content = json.loads(path.read_bytes())
    if isinstance(content, dict) and content.keys() == {"headers", "body"}:
        return json.dumps(content["body"]).encode(), content["headers"]
    return path.read_bytes(), {}


def _notices(path: Path) -> list[InterruptionNotice]:
    body, headers = _unpacked(path)
    try:
        found = decode(body, headers, cluster="local")
    except Exception:
        return []
    messages = [one.message for one in found if isinstance(one, Delivery)]
    return [m for m in messages if isinstance(m, InterruptionNotice)] if len(messages) == len(found) else []


def _samples() -> Iterator[Any]:
    for root in (OURS, SHELF):
        for path in sorted(root.rglob("*.json")):
            if "schema" not in path.name and (said := _notices(path)):
                yield pytest.param(path, said, id=f"{path.parent.name}/{path.stem}")


class Site:
    """A deployment with one spot pool, whose instances it has seen or not."""

    def __init__(
        self,
        known: list[InterruptionNotice],
        start: datetime = datetime(2026, 11, 20, 9, 31, 30, tzinfo=UTC),
        bought: CapacityType = "spot",
    ) -> None:
        plain = App(Settings())
        clock = VirtualClock(start)
        policy = Policy(version=1, pools={"a10g": PoolPolicy(instance_type="g5.xlarge", capacity_type=bought)})
        pool = WorldPool(name="a10g", instance_type="g5.xlarge", capacity_type=bought)
        self.world = world = World(plain.catalog, [pool], clock=clock)
        self.outbox, self.state = MemoryOutbox(), MemoryState(clock)
        seen = {n.instance: Instance(pool="a10g", node=n.instance, seen_at=clock.now()) for n in known}
        INSTANCES.write(self.state, "local", INSTANCES.read(self.state, "local"), seen)
        self.app = App(
            Settings(mode="act"),
            cluster=WorldCluster(world),
            pools=WorldPools(world),
            clock=clock,
            state=self.state,
            outbox=self.outbox,
            policy=policy,
        )

    def alerts(self) -> list[Alert]:
        """All that people were told."""
        return [msgspec.json.decode(m.data, type=Alert) for m in self.outbox.sent if m.topic == "alerts"]


@pytest.mark.parametrize("known", [True, False], ids=["an instance it knows", "a stranger"])
@pytest.mark.parametrize(("path", "said"), list(_samples()))
def test_every_sample_is_taken_once_and_told(path: Path, said: list[InterruptionNotice], known: bool) -> None:
    """Answered 200 with what was decided, one interruption filed for each instance, and nothing new the second time."""
    site = Site(said if known else [])
    body, headers = _unpacked(path)
    first = site.app.receive("spot_interruption", body, headers)
    assert first.status == 200
    answers = first.body.get("answers", [first.body])
    assert all("decision" in answer and answer["why"] for answer in answers)
    instances = {notice.instance for notice in said}
    told = site.alerts()
    assert {a.subject for a in told if a.kind == "interruption"} == instances
    assert all(("of no known pool" in a.what) is not known for a in told if a.kind == "interruption")
    assert len(site.state.scan("interruption/local/").items) == len(instances)
    site.app.receive("spot_interruption", body, headers)
    assert site.alerts() == told


def _in_clear(case: Any) -> bool:
    path, said = case.values
    return said[0].instance in path.read_text()


@pytest.mark.parametrize(("path", "said"), list(filter(_in_clear, _samples())))
def test_an_old_sample_about_a_live_node_does_nothing(path: Path, said: list[InterruptionNotice]) -> None:
    """A sample of days ago is posted for an on-demand node that began since: its ten hours of work go on."""
    site = Site([], start=datetime(2026, 12, 24, 9, 31, 30, tzinfo=UTC), bought="on-demand")
    made = shape(gpu=GpuRequest(count=1))
    pod = PodDemand(uid="u", namespace="ml", name="train", shape=made, created_at=site.world.clock.now())
    site.world.submit(pod, 40 * HOUR)
    site.world.launch("a10g")
    site.world.advance(10 * HOUR)
    body, headers = _unpacked(path)
    for notice in said:
        body = body.replace(notice.instance.encode(), b"n1")
    assert site.app.receive("spot_interruption", body, headers).status == 200
    for n in range(10):
        site.world.advance(10 * HOUR + n * 60)
        site.app.receive("spot_interruption", encode(Tick(cluster="local", what="rescue"), id=f"t{n}"), {})
    assert (site.world.launches, site.world.terminations, site.world.interruptions) == (1, 0, 0)
    assert not site.world.nodes["n1"].cordoned
    assert any("not true" in a.what for a in site.alerts() if a.kind == "interruption")


def test_there_are_samples_of_every_kind() -> None:
    """Two dozen ways in, and every kind of notice among them."""
    found = [notice.kind for path in OURS.rglob("*.json") for notice in _notices(path)]
    assert set(found) >= {
        "spot-interruption", "rebalance", "capacity-reservation", "scheduled-change", "lifecycle", "state-change",
        "preempted",
    }  # fmt: skip


def _broken(told: Any, instance: str) -> Any:
    """The same, with a number wherever the instance is named."""
    if isinstance(told, dict):
        return {key: _broken(value, instance) for key, value in told.items()}
    if isinstance(told, list):
        return [_broken(value, instance) for value in told]
    return 7 if isinstance(told, str) and instance in told else told


@pytest.mark.parametrize(("path", "said"), list(filter(_in_clear, _samples())))
def test_a_malformed_notice_is_refused_by_its_path(path: Path, said: list[InterruptionNotice]) -> None:
    """A number for its instance, in every sample: dead letters with the place that is wrong, and nothing is filed."""
    site = Site(said)
    body, headers = _unpacked(path)
    broken = json.dumps(_broken(json.loads(body), said[0].instance)).encode()
    answer = site.app.receive("spot_interruption", broken, headers)
    refused = [one["rejected"] for one in answer.body.get("answers", [answer.body])]
    assert answer.status == 200
    assert all(re.match(r"[][.\w-]+: Expected `str`, got `int`$", why) for why in refused)
    assert [m.topic for m in site.outbox.sent] == ["dead-letter"] * len(refused)
    assert site.state.scan("interruption/local/").items == []

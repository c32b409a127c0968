"""A worker that stands still before any one call, while another goes on, breaks nothing: four stories."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness.deliveries import Delivery
from harness.faults.baton import Worker
from harness.faults.hazard_ports import ANSWERED, ON_ITS_WAY
from harness.faults.luck import Fault
from harness.one_stall import Play, every_late_call, every_stall
from harness.scene import ALERTS, START, Job, Scene, Skew

from pilotlight.errors import Unavailable
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import ClassPolicy, Policy, PoolPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.records import lease
from pilotlight.flow.records.lease import Lease
from pilotlight.units import Seconds
from pilotlight.world.faults import Faults
from pilotlight.world.machines import WorldPool


def _scene(*runs_s: Seconds, budget: Decimal | None = None) -> Scene:
    """Two pools of whole nodes, a cheap one and a dear one, and a job of one pod of such a node for each run."""
    pools = {
        "four-on-demand": PoolPolicy(instance_type="four", max=3),
        "four-spot": PoolPolicy(instance_type="four", capacity_type="spot", max=3),
    }
    rules = ClassPolicy(
        capacity_types=("on-demand", "spot"), gpu_models="any", idle_timeout=120.0, max_runtime=4 * 3600
    )
    budgets = (Budget(name="day", scope="all", period="day", usd=budget),) if budget else ()
    policy = Policy(version=1, pools=pools, classes={"batch": rules}, budgets=budgets, alerts=ALERTS)
    faults = Faults(boot_s=60.0, reclaim=False, checkpoint_s=120.0, restore_s=60.0)
    jobs = tuple(_job(n, run_s) for n, run_s in enumerate(runs_s))
    return Scene(
        policy,
        tuple(WorldPool.from_policy(name, pool) for name, pool in pools.items()),
        faults,
        jobs,
        (Skew(0), Skew(0)),
    )


def _job(n: int, run_s: Seconds) -> Job:
    made = shape(gpu=GpuRequest(count=4), max_run_s=run_s, team="red")
    pod = PodDemand(uid=f"p{n}", namespace="default", name=f"p{n}", shape=made, created_at=START)
    return Job(0.0, (pod,), run_s, True)


def _broken(
    scene: Scene, kind: str, before: Callable[[Play], None], meanwhile: Callable[[Play], None], stride: int = 1
) -> list[tuple[str, str]]:
    """What the first stall broke that broke any, and where it was."""
    points = 0
    for stall in every_stall(scene, before, meanwhile, stride):
        points += 1
        if broken := [(stall.call, v.text) for v in stall.violations if v.kind == kind]:
            return broken
    assert points > 10
    return []


def _one_idle_node(play: Play) -> None:
    """A node was bought, its pod is done, and it has idled past its timeout."""
    play.setting.submit(0)
    play.tick()
    play.wait(130)
    play.tick()
    play.wait(150)


def _a_pod_binds(play: Play) -> None:
    """A pod comes, another worker looks, and the pod binds where it may: long enough before the release to be seen."""
    play.setting.submit(1)
    play.wait(1)
    play.tick()
    play.wait(3)


def _a_pod_waits(play: Play) -> None:
    play.setting.submit(0)


def _the_other_pool_is_asked(play: Play) -> None:
    """The cloud says that it has none of the cheap pool's; another worker looks now, and a minute later."""
    play.deliver(play.setting.refusal("four-spot", "no-capacity", "refused"))
    play.tick()
    play.wait(61)
    play.tick()


def _the_other_pool_and_more_work(play: Play) -> None:
    """The same, and a pod comes that the budget has nothing left for."""
    _the_other_pool_is_asked(play)
    play.setting.submit(1)
    play.tick()


def _a_node_is_gone(play: Play) -> None:
    """A node was bought and held for, ran for ten minutes, and was taken by another hand."""
    play.setting.submit(0)
    play.tick()
    play.wait(660)
    play.tick()
    play.setting.world.terminate("n1", "by hand", evict=True)


def _others_look(play: Play) -> None:
    play.tick()
    play.wait(61)
    play.tick()


def test_no_pod_dies_by_a_worker_that_stalled() -> None:
    """A release that stood still is not sent to a node on which a pod runs since."""
    assert _broken(_scene(60, 4000), "killed_work", _one_idle_node, _a_pod_binds) == []


def test_one_demand_is_bought_once_though_a_worker_stalled() -> None:
    """A purchase that stood still is not made once another worker has bought elsewhere for the same pod."""
    assert _broken(_scene(4000), "double_buys", _a_pod_waits, _the_other_pool_is_asked) == []


def test_working_without_a_lease_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every worker believes that it holds the cluster, one stall is enough to buy twice for one demand."""
    monkeypatch.setattr(lease, "acquire", lambda state, cluster, holder, **_: _Nobodys(state))
    assert _broken(_scene(4000), "double_buys", _a_pod_waits, _the_other_pool_is_asked)


class _Nobodys(Lease):
    """A lease that is written nowhere."""

    def __init__(self, state: Any) -> None:
        self.fence, self.settled, self.lost_since = 1, None, None
        self._state, self._written = state, state.now()

    def keep(self, *, sure: bool = False, for_s: Seconds = 0.0) -> None:
        """It is ours."""

    def release(self) -> None:
        """Nobody notices."""


def test_a_budget_holds_though_a_worker_stalled() -> None:
    """A purchase that stood still is not made once what was held for it is free, and another has it."""
    scene = _scene(3600, 4000, budget=Decimal(14))
    assert _broken(scene, "cap_overruns", _a_pod_waits, _the_other_pool_and_more_work, stride=3) == []


def test_what_never_came_is_not_told_as_bought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that has a node already shows no other where the answer and the request were lost."""
    play = Play(_scene(4000, 4000), tmp_path / "state.db")
    _a_pod_waits(play)
    play.tick()
    play.wait(130)
    play.setting.submit(1)
    lost = [Fault("half", Unavailable("the connection broke"))]

    def fail(_: str, call: str, *rest: object) -> Fault | None:
        return lost.pop() if call == "grow" and lost else None

    monkeypatch.setattr(play.setting.luck, "fault", fail)
    play.tick()
    play.tick()
    play.end()
    assert not lost
    assert play.setting.invariants.violations == []


def test_a_hold_is_settled_once_though_a_worker_stalled() -> None:
    """Accounts are charged with what a node cost, also where two workers settle it."""
    assert _broken(_scene(4000, budget=Decimal(9)), "leaked_holds", _a_node_is_gone, _others_look) == []


def _stand_before(play: Play, call: str) -> None:
    """The worker that stands still begins a reconcile, and stops before a call."""
    play.stand(0)
    while not play.workers[0].at.startswith(call):
        assert play.workers[0].busy, f"it makes no call {call}"
        play.workers[0].resume()


def test_a_look_that_opens_a_node_buys_nothing_for_the_pod_that_fits_on_it(tmp_path: Path) -> None:
    """A worker died before its release was sent, and a pod waits since: the next look opens the node, and sees that."""
    play = Play(_scene(60, 4000), tmp_path / "state.db")
    _one_idle_node(play)
    _stand_before(play, "release four-spot n1 (on its way)")
    play.workers[0].kill()
    play.setting.submit(1)
    play.wait(62)
    play.tick()
    assert play.setting.world.launches == 1
    assert "p1" in play.setting.world.running
    play.stop()


def test_a_worker_that_wakes_opens_no_node_that_another_gives_back(tmp_path: Path) -> None:
    """It stood still just before its release was set to sent: whoever took over sends that again, under its mark."""
    play = Play(_scene(60, 4000), tmp_path / "state.db")
    _one_idle_node(play)
    first, other = play.workers
    _stand_before(play, "drain n1")
    _go_on(first, "get pause/local/four-spot", ANSWERED)
    play.wait(62)
    play.setting.submit(1)
    _go_on(first, "put step/", ANSWERED)
    other.receive(Delivery(0, 0, "capacity_reconcile", play.setting.tick("reconcile", "other")))
    _go_on(other, "release ", ON_ITS_WAY)
    while first.busy:
        first.resume()
    assert play.setting.world.nodes["n1"].cordoned
    while other.busy:
        other.resume()
    assert [v for v in play.setting.invariants.violations if v.kind == "killed_work"] == []
    play.stop()


def _go_on(worker: Worker, call: str, ends: str) -> None:
    """To within a call."""
    while not (worker.at.startswith(call) and worker.at.endswith(ends)):
        assert worker.busy, f"it makes no call {call}"
        worker.resume()


def test_a_mark_that_comes_after_its_release_was_called_off_is_no_persons_doing(tmp_path: Path) -> None:
    """The worker stood still, wrote it and died before it closed the node: that goes back like any idle one."""
    play = Play(_scene(60, 60), tmp_path / "state.db")
    _one_idle_node(play)
    _stand_before(play, "put mark/")
    play.setting.submit(1)
    play.wait(62)
    play.tick()
    while not play.workers[0].at.startswith("cordon "):
        play.workers[0].resume()
    play.workers[0].kill()
    for _ in range(8):
        play.tick()
        play.wait(61)
    assert not play.setting.world.nodes
    play.stop()


def test_a_purchase_that_lands_late_is_found_told_and_given_back() -> None:
    """Between its last check and the first byte nobody can stop it: its node is used, or told and given back."""
    found = list(every_late_call(_scene(4000), _a_pod_waits, _the_other_pool_is_asked))
    assert [apart["late_launches"] for _, apart in found] == [1, 1]
    assert [v.text for stall, _ in found for v in stall.violations] == []


def test_a_release_that_lands_late_is_told() -> None:
    """People were told that the node is still there; that it went after all, with a pod on it, they are told too."""
    found = list(every_late_call(_scene(60, 4000), _one_idle_node, _a_pod_binds))
    assert [apart["late_kills"] for _, apart in found] == [1, 1]
    assert [v.text for stall, _ in found for v in stall.violations] == []

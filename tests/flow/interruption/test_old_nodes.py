"""Nodes that work and are too old: moved off in order where the pods' classes allow it, and never by force."""

from datetime import timedelta
from typing import Any

import pytest
from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.labels import CHECKPOINT_NOW
from pilotlight.facts.limits.rule_policy import Rule, RuleTime, RuleWhen
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, RenewPolicy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.interruption import own_moves
from pilotlight.flow.interruption.drain_all import carry_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults

NIGHT = Rule(name="night", when=RuleWhen(time=RuleTime(start="02:00", end="03:00")))


class Aged(Stage):
    """A pool whose nodes may be two hours old, with a node on which a pod works that saves when it is asked."""

    def __init__(self, *, moves: bool = True, pods: int = 1, pool: dict[str, Any] | None = None, **rules: Any) -> None:
        batch = ClassPolicy(gpu_models="any", idle_timeout=300, may_move=("max-age",) if moves else ())
        saves_s = rules.pop("saves_s", 20.0)
        renew = RenewPolicy(max_age=2 * HOUR, during=tuple(rule.name for rule in rules.get("rules", ())))
        super().__init__(
            pools={"one": PoolPolicy(instance_type="one", max=5, renew=renew, **(pool or {}))},
            classes={"batch": batch},
            **rules,
        )
        for number in range(pods):
            made = shape(gpu=GpuRequest(count=1), workload_class="batch", checkpoint_s=600.0)
            now = self.world.clock.now()
            pod = PodDemand(
                uid=f"u{number}", namespace="ml", name=f"j{number}", shape=made, created_at=now, grace_s=20.0,
                checkpoint_takes_s=saves_s,
            )  # fmt: skip
            self.world.submit(pod, 20 * HOUR)
            self.event(pod)
            self.hours(0.2)

    @property
    def said(self) -> list[str]:
        """What was told of interruptions."""
        return [alert.what for alert in self.alerts if alert.kind == "interruption"]


def test_a_pod_is_asked_to_save_moves_to_a_new_node_and_the_old_one_goes() -> None:
    """Replaced first, saved, moved, given back; the next two hours nothing more; no work is lost but its restart."""
    stage = Aged()
    stage.hours(1.7)
    assert list(stage.world.nodes) == ["n1"]
    stage.hours(1)
    assert (list(stage.world.nodes), stage.world.launches, len(stage.world.running)) == (["n2"], 2, 1)
    assert stage.said[0].startswith("node-age of n1 of pool one: it goes when its pods have moved")
    assert any("is over" in what for what in stage.said)
    assert CHECKPOINT_NOW in [each[2] for each in stage.deps.cluster.told]  # type: ignore[attr-defined]
    (ready,) = [e["t"] for e in stage.events("ready") if e["node"] == "n2"]
    (left,) = [e["t"] for e in stage.events("stop")]
    assert left >= ready, "nobody is evicted before there is room"


STAYS: dict[str, dict[str, Any]] = {
    "its class does not say so": {"moves": False},
    "it cannot save when it is asked": {"saves_s": 0.0},
    "no window is open": {"rules": (NIGHT,)},
    "its pool only buys": {"pool": {"mode": "scale-up"}},
    "its interruptions are another's": {"pool": {"handled_by": "karpenter"}},
}


@pytest.mark.parametrize("rules", STAYS.values(), ids=STAYS)
def test_a_node_that_works_stays_where(rules: dict[str, Any]) -> None:
    """However old it grows, its pod works on."""
    stage = Aged(**rules)
    stage.hours(4)
    assert (list(stage.world.nodes), stage.said) == (["n1"], [])


def test_two_old_nodes_are_replaced_one_after_the_other() -> None:
    """Never two of a pool at once: a job waits for one node at most."""
    stage = Aged(pods=2)
    most = 0
    for _ in range(50):
        stage.hours(0.05)
        most = max(most, len(stage.world.nodes))
    assert (sorted(stage.world.nodes), most, len(stage.world.running)) == (["n3", "n4"], 3, 2)


def test_a_pod_that_finds_no_room_works_on_and_its_node_takes_pods_again() -> None:
    """The cloud has no second node: nobody is evicted, the node is opened after half an hour, and left for a day."""
    stage = Aged()
    stage.world.set_faults(Faults(shortage=1.0))
    stage.hours(6)
    (node,) = stage.world.nodes.values()
    assert (node.id, bool(node.jobs), node.cordoned) == ("n1", True, False)
    assert len([what for what in stage.said if "it goes" in what]) == 1
    stage.world.set_faults(Faults())
    stage.hours(24)
    assert "n1" not in stage.world.nodes


def test_a_clouds_notice_counts_more_than_age() -> None:
    """An order that comes while a node is being replaced is taken as if it were alone."""
    stage = Aged()
    stage.world.set_faults(Faults(shortage=1.0))
    stage.hours(2)
    now = stage.world.clock.now()
    stage.world.interrupt("n1", 120)
    ends = now + timedelta(seconds=120)
    notice = InterruptionNotice(
        cluster="c", instance="n1", kind="scheduled-change", cloud="world", at=now, deadline=ends
    )  # fmt: skip
    interrupt(stage.deps, notice)
    assert any(what.startswith("scheduled-change of n1") for what in stage.said)


def test_what_keeps_one_kind_from_being_begun_keeps_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a paid block's end cannot be looked at, moves off old nodes begin all the same; the error is raised."""

    def unread(_: object) -> None:
        raise Unavailable("no answer")

    begun: list[str] = []
    monkeypatch.setattr(own_moves, "begin_before_block_ends", unread)
    monkeypatch.setattr(own_moves, "begin_off_old", lambda deps: begun.append(deps.name))
    stage = Aged(pods=0, pool={"capacity_type": "reserved"})
    with pytest.raises(Unavailable, match="no answer"):
        carry_on(stage.deps)
    assert begun == ["c"]

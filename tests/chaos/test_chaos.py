"""The chaos harness: nothing breaks under many seeds, a seed repeats exactly, and planted bugs are caught."""

import os
from collections.abc import Callable
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec
import pytest
from harness import parallel_run
from harness.chaos_sweep import sweep, total
from harness.faults.luck import LEASE_S, Luck
from harness.serial_run import run

from pilotlight.decide.money import budget_balance
from pilotlight.decide.money.metering import count_day
from pilotlight.decide.place import room
from pilotlight.errors import Busy
from pilotlight.facts.decisions import CallStep, NodeVerdict
from pilotlight.facts.money.bill import MeterPart
from pilotlight.facts.money.budgets import Ladder
from pilotlight.flow.answer import Answer
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.budgets import budget_holds as holds
from pilotlight.flow.budgets import ladder_steps
from pilotlight.flow.cycle import act, cycle
from pilotlight.flow.delivery import fan_out, flush
from pilotlight.flow.observe import snapshot
from pilotlight.flow.records import call_steps, flight_log, ledger
from pilotlight.ports.state import ABSENT
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

Plant = Callable[[pytest.MonkeyPatch], None]


def test_two_dozen_seeds_break_nothing() -> None:
    """Deaths before and after every effect, doubles, drops, refusals and budgets: every count stays zero."""
    found = total(sweep(range(24), 40, os.cpu_count() or 1))
    assert [v for outcome in found.broken for v in (outcome.seed, *outcome.violations)] == []
    assert found.runs == 24
    assert found.deaths > 24
    assert found.launches > 24


def test_a_seed_repeats_exactly() -> None:
    """The same seed gives the same schedule, call by call; another one another."""
    assert run(7, 20).lines == run(7, 20).lines != run(8, 20).lines


def test_threads_and_processes_break_nothing() -> None:
    """Workers that are real threads and real processes, killed as such, on one store file: every count stays zero."""
    found = total(sweep(range(6), 30, 1, parallel_run.run))
    assert [v for outcome in found.broken for v in (outcome.seed, outcome.folder, *outcome.violations)] == []
    assert found.runs == 6
    assert found.deliveries >= 180
    assert found.deaths > 0
    assert found.launches > 0


def test_threads_and_processes_stand_still_for_ten_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before one call in fifty a worker stops until ten leases have passed, and breaks nothing."""
    monkeypatch.setattr(Luck, "stall_s", lambda self, rng: 10 * LEASE_S if rng.random() < 0.02 else 0.0)
    outcome = parallel_run.run(6, 30)
    assert outcome.violations == ()
    assert {f"w{n} stands still for 600.0 s" in "\n".join(outcome.lines) for n in range(2)} == {True}


def test_a_parallel_run_that_breaks_something_keeps_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cloud that always sells one node more than it was asked for: the log and the store stay in a folder."""
    grow = WorldPools.grow
    monkeypatch.setattr(
        WorldPools, "grow", lambda self, pool, to, zone="", **gate: grow(self, pool, to + 1, zone, **gate)
    )
    outcome = next(found for found in (parallel_run.run(seed, 20) for seed in range(20)) if found.violations)
    folder = Path(outcome.folder)
    try:
        assert outcome.violations[0].text in (folder / "log").read_text()
        assert (folder / "state.db").exists()
    finally:
        rmtree(folder)


def no_record_before_the_buy(patch: pytest.MonkeyPatch) -> None:
    """Neither the decision nor its ledger entry is written before the cloud is called."""
    patch.setattr(ledger, "write", lambda state, record, if_version=None: ABSENT)
    patch.setattr(flight_log, "write_flight", lambda state, key, entry: None)
    patch.setattr(
        call_steps, "write_planned", lambda deps, record: [_Sending(deps, record, step, 0) for step in record.steps]
    )


class _Sending(call_steps.Sending):
    """A step that lies nowhere."""

    def _put(self, step: CallStep) -> None:
        self.step = step


def in_flight_ignored(patch: pytest.MonkeyPatch) -> None:
    """Capacity on its way counts for nothing."""
    true_look = snapshot.look

    def look(deps: Any, **options: Any) -> Any:
        seen = true_look(deps, **options)
        pools = tuple(
            msgspec.structs.replace(p, desired=sum(n.pool == p.name for n in seen.view.nodes), booting=())
            for p in seen.pools
        )
        return msgspec.structs.replace(
            seen, pools=pools, memory=msgspec.structs.replace(seen.memory, in_flight=(), came=())
        )

    patch.setattr(cycle, "look", look)
    assert snapshot.look is true_look


def nothing_pending_releases(patch: pytest.MonkeyPatch) -> None:
    """As the article's own watchdog: with nothing pending, every node goes, whoever is on it."""

    def verdicts(nodes: Any, offerings: Any, *rest: Any) -> tuple[list[NodeVerdict], None]:
        gone = [
            NodeVerdict(
                node=n.name, pool=n.pool, instance=n.instance, verdict="release", why="nothing is pending",
                usd_per_hour=offerings[n.pool].usd_per_hour,
            )
            for n in nodes
            if n.pool in offerings
        ]  # fmt: skip
        return gone, None

    patch.setattr("pilotlight.decide.nodes.scale_down.verdicts", verdicts)
    _take_busy_nodes(patch)


def scale_down_by_count(patch: pytest.MonkeyPatch) -> None:
    """The pool is lowered by one and the cloud picks the victim: here the oldest node, busy or not."""
    _take_busy_nodes(patch)
    true_release = act.Act._release

    def release(self: Any, node: NodeVerdict, sending: Any) -> Any:
        oldest = min((n for n in self.snapshot.view.nodes if n.pool == node.pool), key=lambda n: n.created_at)
        return true_release(self, msgspec.structs.replace(node, node=oldest.name, instance=oldest.instance), sending)

    patch.setattr(act.Act, "_release", release)


def gang_without_rollback(patch: pytest.MonkeyPatch) -> None:
    """What was placed of a gang stays when the rest cannot be, and is bought."""
    patch.setattr(room.Savepoint, "restore", lambda self, run: None)
    patch.setattr(act.Act, "_break", lambda self, gangs: None)


def budgets_not_asked(patch: pytest.MonkeyPatch) -> None:
    """Purchases are planned and made whatever the budgets leave."""
    patch.setattr(budget_balance.Purse, "room", lambda self, terms: [])
    patch.setattr(holds, "reserve", lambda *args: "")


def counted_anew(patch: pytest.MonkeyPatch) -> None:
    """Every look counts a node from its launch on."""
    true = count_day

    def anew(part: MeterPart, *rest: Any) -> MeterPart:
        nodes = {id: msgspec.structs.replace(node, until=node.since) for id, node in part.nodes.items()}
        return true(msgspec.structs.replace(part, nodes=nodes), *rest)

    patch.setattr(meter_nodes, "count_day", anew)


def rungs_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Where a budget stood is not known at the next look."""
    true = holds.read_ladder
    patch.setattr(holds, "read_ladder", lambda state, cluster: (Ladder(), true(state, cluster)[1]))


def nobody_climbs(patch: pytest.MonkeyPatch) -> None:
    """Budgets stay where they are, whatever is spent."""
    patch.setattr(ladder_steps, "climb", lambda *_: ())


def nothing_flushed(patch: pytest.MonkeyPatch) -> None:
    """What could not be told at once is left."""
    patch.setattr(flush, "flush", lambda *_, **__: Answer(decision="", did=(), why="", outcome="nothing"))


def proofs_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Whoever gets an alert tells it."""
    patch.setattr(fan_out, "reason_not_to_tell", lambda *_: "")
    patch.setattr(flush, "reason_not_to_tell", lambda *_: "")


def replaced_twice(patch: pytest.MonkeyPatch) -> None:
    """A pod that comes back under a new name counts beside the one that it was."""
    true_look = snapshot.look

    def look(deps: Any, **options: Any) -> Any:
        seen = true_look(deps, **options)
        back = [d for d in seen.view.pending if "-r" in d.uid]
        ghosts = [msgspec.structs.replace(d, uid=f"{d.uid}-ghost", name=f"{d.name}-ghost") for d in back]
        return msgspec.structs.replace(
            seen, view=msgspec.structs.replace(seen.view, pending=(*seen.view.pending, *ghosts))
        )

    patch.setattr(cycle, "look", look)


def cordons_left(patch: pytest.MonkeyPatch) -> None:
    """A node that cannot be drained is left as it is: nobody takes its cordon off."""

    def busy(self: WorldCluster, node: str) -> None:
        raise Busy(f"{node} cannot be drained")

    patch.setattr(WorldCluster, "drain", busy)
    patch.setattr(WorldCluster, "uncordon", lambda self, node: None)


def _take_busy_nodes(patch: pytest.MonkeyPatch) -> None:
    """The cluster's own guards do not look: no re-list, no refusal to drain, and the cloud evicts."""
    from pilotlight.world.simulation import World

    true_terminate = World.terminate
    patch.setattr(WorldCluster, "bound_pods", lambda self, node: ())
    patch.setattr(WorldCluster, "drain", lambda self, node: None)
    patch.setattr(
        World, "terminate", lambda self, node_id, reason, evict=False: true_terminate(self, node_id, reason, evict=True)
    )


@pytest.mark.parametrize(
    ("plant", "kinds", "first"),
    [
        pytest.param(
            no_record_before_the_buy,
            {"double_buys", "lost_messages", "doubled_effects"},
            6,
            id="nothing written before the buy",
        ),
        pytest.param(in_flight_ignored, {"double_buys", "cap_overruns"}, 11, id="capacity in flight is ignored"),
        pytest.param(nothing_pending_releases, {"killed_work"}, 0, id="scale-down because nothing is pending"),
        pytest.param(
            gang_without_rollback, {"stuck_gangs", "lost_demands", "cap_overruns"}, 0, id="a gang without rollback"
        ),
        pytest.param(scale_down_by_count, {"killed_work"}, 1, id="scale-down by count"),
        pytest.param(budgets_not_asked, {"cap_overruns"}, 8, id="budgets not asked before the buy"),
        pytest.param(counted_anew, {"miscounted_dollars"}, 0, id="a node's time is counted anew at every look"),
        pytest.param(rungs_forgotten, {"ladder_slips"}, 5, id="where a budget stood is forgotten"),
        pytest.param(nobody_climbs, {"ladder_slips"}, 5, id="a budget never climbs"),
        pytest.param(nothing_flushed, {"lost_alerts"}, 1, id="alerts that wait are left"),
        pytest.param(proofs_not_looked_at, {"doubled_alerts"}, 3, id="a proof is not looked at"),
        pytest.param(replaced_twice, {"double_replacements"}, 5, id="two replacements for one pod"),
        pytest.param(cordons_left, {"overlong_cordons"}, 0, id="a cordon is never taken off"),
    ],
)
def test_a_planted_bug_is_caught(plant: Plant, kinds: set[str], first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these bugs breaks one of its laws within forty seeds from ``first`` on, a seed that shows it soon."""
    plant(monkeypatch)
    for seed in range(first, first + 40):
        if kinds & {v.kind for v in run(seed, 40).violations}:
            return
    pytest.fail("forty seeds did not notice")

"""Bugs to plant: a line of the code as it is, and what it would say if somebody had it wrong.

As a pytest plugin (``-p planted --planted NAME``) it plants one before anything else is imported.
"""

import inspect
import textwrap
from collections.abc import Callable
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest


class Bug(NamedTuple):
    """``where`` is module:function; ``old`` is in its source, and ``new`` takes its place.

    What catches it: ``kinds`` of violations within ``seeds``, or ``test``, a file or a test in it.
    """

    where: str
    old: str
    new: str
    kinds: frozenset[str] = frozenset()
    seeds: range = range(60)
    test: str = ""


TWO_CLUSTERS = range(9, 60, 5)
"""Seeds whose deployment has two clusters."""


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


BUGS = {
    "a decision is filed beside the audit chain": Bug(
        "flow.records.ledger:close",
        "record.at, digest)",
        'record.at, "0" * 64)',
        _kinds("broken_chains"),
        range(3),
    ),
    "an account is written without its version": Bug(
        "flow.budgets.budget_accounts:change",
        "if_version=version",
        "if_version=None",
        test="tests/chaos/test_one_stall.py::test_a_hold_is_settled_once_though_a_worker_stalled",
    ),
    "an account of holds that move on together is written without its version": Bug(
        "flow.budgets.budget_room:BudgetRoom._write",
        "if_version=version",
        "if_version=None",
        test="tests/flow/budgets/test_moves_together.py",
    ),
    "dollars that one shared node is granted are left to the others too": Bug(
        "flow.budgets.hold_funding:Funding.payers",
        "self._pledged |= pledges",
        "self._pledged |= {}",
        test="tests/flow/budgets/owners/test_shared_nodes.py::test_money_for_one_node_is_not_taken_for_money_on_three",
    ),
    "pods without money cost their node": Bug(
        "flow.budgets.hold_funding:Funding.payers",
        "while out:",
        "while False:",
        test="tests/flow/budgets/owners/test_shared_nodes.py::test_a_team_out_of_money_costs_its_neighbour_no_second_node",
    ),
    "a node opens for pods without money": Bug(
        "flow.budgets.hold_moves:HoldMoves._without_unfunded",
        "self._stays_closed(after, node)",
        "False",
        test="tests/flow/budgets/owners/test_shared_nodes.py::"
        "test_the_node_stays_closed_while_only_pods_without_money_wait",
    ),
    "holds are not looked at before their account is written": Bug(
        "flow.budgets.budget_room:BudgetRoom._write",
        "not self._claimed.issubset([e.value.id for e in holds if e.value.ended_at is None])",
        "False",
        test="tests/flow/budgets/test_moves_together.py",
    ),
    "what a stopped node cost is not settled": Bug(
        "decide.money.budget_balance:settle_hold",
        "settled=account.settled + cost",
        "settled=account.settled",
        _kinds("leaked_holds"),
    ),
    "a hold is settled twice": Bug(
        "decide.money.budget_balance:settle_hold",
        "settled=account.settled + cost",
        "settled=account.settled + cost + cost",
        _kinds("leaked_holds"),
    ),
    "the look at pods after a cordon is skipped": Bug(
        "flow.cycle.release:NodeRelease._see_that_it_is_empty",
        "if node.forced and not node.unless_busy:",
        "if True:",
        test="tests/flow/cycle/test_safe_order.py",
    ),
    "no check before a release is sent": Bug(
        "flow.cycle.release:NodeRelease._give_back",
        "gate=self._last_look",
        'gate=lambda: setattr(sending, "let_out", True)',
        test="tests/chaos/test_one_stall.py::test_no_pod_dies_by_a_worker_that_stalled",
    ),
    "in flight is compared with <=": Bug(
        "flow.records.ledger:still_booting",
        "left[own[0]] >= entries",
        "left[own[0]] > entries",
        test="tests/flow/records/test_still_booting.py",
    ),
    "recovery takes a pool's size as what came": Bug(
        "flow.cycle.recovery:_settle_grow",
        "came = max(0, min(step.count, step.count - (step.to - size)))",
        "came = min(step.count, size)",
        test="tests/flow/cycle/test_lost_answers.py",
    ),
    "the key under which an alert is told names no cluster": Bug(
        "flow.delivery.desk:_name",
        'f"{alert.cluster}/{channel}/',
        'f"all/{channel}/',
        test="tests/flow/delivery/test_alerts_of_two_clusters.py",
    ),
    "the key under which an alert is told names no cluster, and a deployment has two": Bug(
        "flow.delivery.desk:_name",
        'f"{alert.cluster}/{channel}/',
        'f"all/{channel}/',
        _kinds("lost_alerts"),
        TWO_CLUSTERS,
    ),
    "an alert's id names no cluster": Bug(
        "flow.answer:by_fingerprint",
        'f"{alert.cluster}-{',
        'f"{',
        test="tests/flow/delivery/test_alerts_of_two_clusters.py",
    ),
    "the holds of all clusters are taken for one's own": Bug(
        "flow.budgets.budget_accounts:every_hold",
        'HOLD.scan(deps.state, f"{deps.name}/")',
        "HOLD.scan(deps.state)",
        _kinds("crossed_clusters"),
        TWO_CLUSTERS,
    ),
    "a node is not stopped at its hard cap, and the API server was down for a while": Bug(
        "flow.budgets.hold_moves:HoldMoves._stopped",
        "if not refused or one is None",
        "if True or one is None",
        _kinds("cap_overruns"),
        range(14, 15),
    ),
    "nobody is told of a release that landed late": Bug(
        "flow.alerts.wording:landed_late",
        "and is_gone(pool, node)",
        "and not node",
        test="tests/chaos/test_one_stall.py::test_a_release_that_lands_late_is_told",
    ),
    "an approval is never used up": Bug(
        "flow.records.brake_records:spend_approvals",
        "if buy.approval}",
        "if buy.approval and False}",
        test="tests/flow/cycle/test_brakes.py",
    ),
    "a notice that nobody confirms is obeyed at once": Bug(
        "decide.interruption.drain_plan:_of_group",
        'at, why = latest, "nobody',
        'latest = found.begin; at, why = latest, "nobody',
        test="tests/flow/interruption/test_false_notices.py",
    ),
    "a run that may not be stopped is cut short": Bug(
        "decide.money.node_end:ending",
        "max(at, promised + after)",
        "promised - 3 * after",
        _kinds("false_evictions"),
    ),
    "a node is not stopped where its budget ends": Bug(
        "flow.budgets.hold_moves:HoldMoves._stopped",
        "if not end.may or",
        "if True or",
        _kinds("cap_overruns"),
    ),
    "a period is taken in UTC": Bug(
        "decide.money.budget_limits:window",
        "ZoneInfo(budget.timezone)",
        'ZoneInfo("UTC")',
        _kinds("ladder_slips", "leaked_holds", "cap_overruns"),
    ),
    "NotIn selects what it names": Bug(
        "facts.fit.matching:holds",
        "value is None or value not in requirement.values",
        "value is not None and value in requirement.values",
        test="tests/decide/fit/test_fit.py",
    ),
    "Gt and Lt are swapped": Bug(
        "facts.fit.matching:holds",
        'requirement.operator == "Gt" else',
        'requirement.operator == "Lt" else',
        test="tests/decide/fit/test_fit.py",
    ),
    "only the first address of a host is looked at": Bug(
        "adapters.webhook_post:Poster._addresses",
        "for address in addresses:",
        "for address in addresses[:1]:",
        test="tests/adapters/channels/test_hook_addresses.py",
    ),
    "what GKE has taken on counts once it is listed": Bug(
        "adapters.pools.gke.pool_states:state_at",
        "desired=sum(seen.size for seen in every)",
        "desired=sum(len(seen.instances) for seen in every)",
        test="tests/adapters/pools/gke/test_gke_groups.py::test_done_is_not_even_listed",
    ),
    "what a group of GKE's tries for ever is not called off": Bug(
        "adapters.pools.gke.pool_states:state_at",
        "refused=ours,",
        "",
        test="tests/flow/clouds/test_on_gke.py::test_what_could_not_be_made_is_called_off_and_its_pod_goes_elsewhere",
    ),
    "an instance that is only a name is paid for": Bug(
        "decide.money.holds:lit_instances",
        " if not one.unmade)",
        ")",
        test="tests/flow/billing/test_meter_nodes.py::test_an_instance_that_is_a_name_alone_costs_nothing",
    ),
    "an old error of an instance of GKE's refuses it": Bug(
        "adapters.pools.gke.groups:_refused",
        " if one.unmade}",
        "}",
        test="tests/adapters/pools/gke/test_gke_groups.py::test_an_old_error_of_an_instance_that_is_there_says_nothing",
    ),
    "a node pool of GKE's in two colours is bought from": Bug(
        "adapters.pools.gke.closed:why_closed",
        "pool.status not in STEADY or upgraded",
        "False",
        test="tests/flow/clouds/test_on_gke.py::test_a_pool_that_gke_upgrades_is_left_alone_and_says_why",
    ),
    "an instance of GKE's is as old as the look at it": Bug(
        "adapters.pools.gke.pool_states:_booting",
        "seen.made.get(one.called) or now",
        "now",
        test="tests/adapters/pools/gke/test_gke_groups.py::test_a_name_that_is_used_again_has_the_age_of_what_is_there",
    ),
    "a blip of a group sends pods to a dearer pool": Bug(
        "flow.observe.remembered_pools:_silent",
        "or now >= until",
        "or True",
        test="tests/flow/clouds/test_on_gke_silent.py::test_a_pod_waits_for_its_cheapest_pool_through_a_blip",
    ),
    "a lost purchase of a hidden group came": Bug(
        "flow.cycle.recovery:_settle_grow",
        "and pool.hidden for pool",
        "and False for pool",
        test="tests/flow/clouds/test_on_gke_silent.py::test_a_lost_purchase_is_settled_once_its_group_is_seen_again",
    ),
    "a claim goes whatever has become of it since the look": Bug(
        "adapters.pools.karpenter:KarpenterPools.release",
        " if instance == name else {}",
        " if False else {}",
        test="tests/flow/clouds/test_on_karpenter.py::test_one_that_is_launched_while_it_is_called_off_stays",
    ),
    "a NodePool by which Karpenter buys is bought by": Bug(
        "adapters.pools.karpenter:_closed",
        "gate_state(pool, ()).limit == 0",
        "True",
        test="tests/adapters/pools/karpenter/test_karpenter_claims.py::test_a_node_pool_that_buys_by_itself_is_left_to_karpenter",
    ),
    "a claim that drains is a part of its pool": Bug(
        "codec.kubernetes.karpenter_objects:live_ones",
        "claim.metadata.deletion_timestamp is None",
        "True",
        test="tests/adapters/pools/karpenter/test_karpenter_claims.py::test_a_claim_that_drains_is_no_part_of_its_pool_and_is_deleted_once",
    ),
    "a claim that waits for ever is not called off": Bug(
        "flow.observe.asked_nodes:_with_asked",
        "refused=(*pool.refused, *(one.name for one in late)),",
        "refused=pool.refused,",
        test="tests/flow/clouds/test_on_karpenter.py::test_a_claim_that_waits_for_ever_is_called_off_and_its_pod_goes_elsewhere",
    ),
    "a purchase that broke in the middle says that nothing was bought": Bug(
        "adapters.pools.karpenter:KarpenterPools._create",
        "raise no if first else",
        "raise no if True else",
        test="tests/adapters/pools/karpenter/test_karpenter_claims.py::test_what_fails_after_the_first_of_several_is_unsure",
    ),
    "what a group is yet to make of a reservation is free": Bug(
        "adapters.pools.gke.reservations:_paid",
        "free=free - taken,",
        "free=free,",
        test="tests/adapters/pools/gke/test_gke_reservations.py::test_what_is_yet_to_be_made_is_not_free",
    ),
    "a full reservation is asked for more": Bug(
        "adapters.pools.gke.reservations:see_that_there_is_room",
        "if free < wanted:",
        "if False:",
        test="tests/adapters/pools/gke/test_gke_reservations.py::test_a_full_reservation_is_not_asked_for_what_it_has_not",
    ),
    "what another hand waits for at GKE is called off": Bug(
        "adapters.pools.gke.own_names:is_own",
        "return name.startswith",
        "return True or name.startswith",
        test="tests/adapters/pools/gke/test_gke_groups.py::test_what_another_hand_made_counts_and_is_not_called_off",
    ),
    "what a group of GKE's takes back is on its way": Bug(
        "adapters.pools.gke.groups:look",
        " if one.live",
        "",
        test="tests/adapters/pools/gke/test_gke_groups.py::test_a_resize_request_that_is_rolled_back_leaves_what_was_there",
    ),
}


def function(where: str) -> FunctionType:
    """The function that a name of this table means."""
    module, _, path = where.partition(":")
    found: Any = import_module(f"pilotlight.{module}")
    for name in path.split("."):
        found = getattr(found, name)
    assert isinstance(found, FunctionType)
    return found


def planted(bug: Bug) -> CodeType:
    """The function's code with the bug in it. Fails where the line is not there any more: the table is out of date."""
    true = function(bug.where)
    source = textwrap.dedent(inspect.getsource(true))
    assert bug.old in source, f"{bug.where} has no {bug.old!r}: plant the bug where it would be now"
    module = compile(source.replace(bug.old, bug.new), f"<planted in {bug.where}>", "exec")
    return next(c for c in module.co_consts if isinstance(c, CodeType) and c.co_name == true.__name__)


def plant(bug: Bug, set_: Callable[[Any, str, Any], None] = setattr) -> None:
    """Whoever has imported the function has the bug too."""
    set_(function(bug.where), "__code__", planted(bug))


def pytest_addoption(parser: pytest.Parser) -> None:
    """The name of the bug to plant."""
    parser.addoption("--planted")


def pytest_configure(config: pytest.Config) -> None:
    """Plant it."""
    if config.getoption("--planted"):
        plant(BUGS[config.getoption("--planted")])

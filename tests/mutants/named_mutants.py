"""Mutants that survived their tests once: a line as it is, what it was made, and the test that kills it since.

By the names of functions: they outlive moves. ``make mutants ARGS=--named`` plants each and sees it killed.
"""

from typing import NamedTuple


class Named(NamedTuple):
    """``old`` is in the function's source once; ``new`` takes its place, and ``test`` fails."""

    file: str
    function: str
    old: str
    new: str
    test: str


NAMED = (
    Named(
        "flow/memory/marks.py",
        "_back",
        "_over(claim, now) or ",
        "",
        "tests/flow/test_marks.py::test_a_node_that_was_given_back_and_did_not_go_opens_after_ten_minutes",
    ),
    Named(
        "flow/memory/marks.py",
        "_back",
        " or node.created_at > claim.since",
        "",
        "tests/flow/test_marks.py::test_a_node_that_has_the_name_of_one_that_went_is_another",
    ),
    Named(
        "flow/memory/marks.py",
        "settle",
        "mark.closed and not node.marked and",
        "not node.marked and",
        "tests/flow/test_marks.py::test_that_a_person_opened_a_node_is_said_by_one_look",
    ),
    Named(
        "flow/memory/marks.py",
        "settle",
        "mark.closed and not node.marked and",
        "mark.closed and",
        "tests/flow/test_marks.py::test_a_release_that_is_still_marked_was_opened_by_nobody",
    ),
    Named(
        "flow/memory/marks.py",
        "settle",
        "mark.closed and not node.marked and _settled(mark, now)",
        "mark.closed and not node.marked",
        "tests/flow/test_marks.py::test_a_look_from_before_a_node_was_closed_opens_nothing",
    ),
    Named(
        "decide/money/holds.py",
        "match",
        "h.terms.pool == one.pool and ",
        "",
        "tests/decide/test_hold_matching.py::test_an_instance_takes_no_hold_of_another_pool",
    ),
    Named(
        "decide/money/holds.py",
        "match",
        " and h.since <= one.since + SKEW",
        "",
        "tests/decide/test_hold_matching.py::test_an_instance_that_was_there_before_takes_no_hold",
    ),
    Named(
        "decide/money/holds.py",
        "match",
        "h.since <= one.since + SKEW",
        "h.since < one.since + SKEW",
        "tests/decide/test_hold_matching.py::test_an_instance_that_was_there_before_takes_no_hold",
    ),
    Named(
        "decide/money/holds.py",
        "match",
        "one.since + SKEW",
        "one.since - SKEW",
        "tests/decide/test_hold_matching.py::test_an_instance_that_was_there_before_takes_no_hold",
    ),
    Named(
        "decide/money/holds.py",
        "_coming",
        "owed[hold.terms.pool] -= not of_workload(hold)",
        "pass",
        "tests/decide/test_hold_matching.py::test_a_cloud_that_owes_one_instance_keeps_one_hold",
    ),
    Named(
        "decide/money/holds.py",
        "_coming",
        "not of_workload(hold)",
        "True",
        "tests/decide/test_hold_matching.py::test_the_hold_of_a_queued_workload_takes_nothing_of_what_a_cloud_owes",
    ),
    Named(
        "decide/money/budget_balance.py",
        "Purse._at_stake",
        "max(hold.until, hold.binds_until)",
        "min(hold.until, hold.binds_until)",
        "tests/decide/test_budget.py::test_a_run_over_midnight_needs_room_in_both_days",
    ),
    Named(
        "decide/money/stretch.py",
        "ending",
        "promised + timedelta(seconds=stop_s())",
        "promised - timedelta(seconds=stop_s())",
        "tests/decide/test_stretch.py::test_a_run_that_may_not_be_stopped_has_all_that_it_was_promised",
    ),
    Named(
        "decide/money/stretch.py",
        "ending",
        "promised + timedelta(seconds=stop_s())",
        "promised",
        "tests/decide/test_stretch.py::test_a_run_that_may_not_be_stopped_has_all_that_it_was_promised",
    ),
    Named(
        "decide/capacity/scale_down.py",
        "_Judge._one",
        "floor > self.now and self.lit <= 1",
        "self.lit <= 1",
        "tests/decide/test_scale_down.py::test_a_cloud_that_keeps_a_pools_last_node_keeps_no_other",
    ),
    Named(
        "decide/capacity/scale_down.py",
        "_Judge._one",
        " and self.lit <= 1",
        "",
        "tests/decide/test_scale_down.py::test_a_cloud_that_keeps_a_pools_last_node_keeps_no_other",
    ),
    Named(
        "decide/capacity/scale_down.py",
        "_Judge._one",
        "self.lit <= 1",
        "self.lit < 1",
        "tests/decide/test_scale_down.py::test_a_cloud_that_keeps_a_pools_last_node_keeps_no_other",
    ),
    Named(
        "decide/capacity/scale_down.py",
        "_Judge._one",
        "self.lit <= 1",
        "self.lit <= 2",
        "tests/decide/test_scale_down.py::test_a_cloud_that_keeps_a_pools_last_node_keeps_no_other",
    ),
    Named(
        "decide/capacity/scale_down.py",
        "_Judge._one",
        "floor > self.now and",
        "floor >= self.now and",
        "tests/decide/test_scale_down.py::test_a_cloud_that_keeps_a_pools_last_node_keeps_no_other",
    ),
    Named(
        "flow/cycle/give_back.py",
        "GiveBack.run",
        ' and sending.step.state == "planned"',
        "",
        "tests/flow/test_give_back.py::test_a_late_worker_does_not_open_a_node_whose_first_release_landed",
    ),
    Named(
        "flow/cycle/give_back.py",
        "GiveBack._see_that_it_is_no_node",
        "self.node.instance in (node.instance, node.name) and ",
        "",
        "tests/flow/test_give_back.py::test_an_instance_that_became_a_node_since_the_look_stays",
    ),
    Named(
        "flow/cycle/give_back.py",
        "GiveBack._see_that_it_is_no_node",
        "node.ready or node.gpu_pods",
        "node.ready and node.gpu_pods",
        "tests/flow/test_give_back.py::test_an_instance_that_became_a_node_since_the_look_stays",
    ),
    Named(
        "flow/cycle/give_back.py",
        "GiveBack._see_that_it_is_no_node",
        "node.ready or node.gpu_pods",
        "node.ready",
        "tests/flow/test_give_back.py::test_an_instance_that_became_a_node_since_the_look_stays",
    ),
    Named(
        "flow/cycle/give_back.py",
        "GiveBack._see_that_it_is_no_node",
        " and (node.ready or node.gpu_pods)",
        "",
        "tests/flow/test_give_back.py::test_an_instance_that_became_a_node_since_the_look_stays",
    ),
    Named(
        "flow/cycle/give_back.py",
        "GiveBack._see_that_it_is_no_node",
        "(node.instance, node.name)",
        "(node.name,)",
        "tests/flow/test_give_back.py::test_an_instance_that_became_a_node_since_the_look_stays",
    ),
    Named(
        "flow/cycle/give_back.py",
        "GiveBack._see_that_it_is_no_node",
        "(node.instance, node.name)",
        "(node.instance,)",
        "tests/flow/test_give_back.py::test_an_instance_that_became_a_node_since_the_look_stays",
    ),
    Named(
        "flow/interruption/own_release.py",
        "answered",
        "node is None or node.gpu_pods",
        "node is None",
        "tests/flow/test_give_back.py::test_the_hook_of_a_node_that_a_pod_bound_to_waits_for_the_pod",
    ),
    Named(
        "flow/interruption/own_release.py",
        "answered",
        "seen is None or not seen.going",
        "seen is not None and not seen.going",
        "tests/flow/test_give_back.py::test_our_mark_alone_makes_no_release_true",
    ),
    Named(
        "flow/interruption/own_release.py",
        "answered",
        "seen is None or not seen.going",
        "seen is None",
        "tests/flow/test_give_back.py::test_our_mark_alone_makes_no_release_true",
    ),
    Named(
        "flow/books/keeper.py",
        "_Keeper._stopped",
        ' or self.deps.mode_of(one.pool) != "act"',
        "",
        "tests/flow/test_modes_that_only_grow.py::test_no_stop_is_begun_at_a_cap",
    ),
    Named(
        "flow/interruption/saving.py",
        "Saving._may_evict",
        'self.deps.mode_of(self.found.pool) != "act"',
        "False",
        "tests/flow/test_modes_that_only_grow.py::test_a_notice_evicts_nobody_and_ends_no_node",
    ),
    Named(
        "flow/interruption/rescue.py",
        "Rescue._release",
        'self.deps.mode_of(self.found.pool) != "act"',
        "False",
        "tests/flow/test_modes_that_only_grow.py::test_a_notice_evicts_nobody_and_ends_no_node",
    ),
    Named(
        "flow/books/hold_ends.py",
        "_ended",
        "extend(deps, found.value, meter, cost, least=cost)",
        "pass",
        "tests/flow/books/test_hold_ends.py::test_a_node_that_outlived_its_hold_over_midnight_is_paid_for_in_both_days",
    ),
    Named(
        "flow/cycle/act.py",
        "Act._grow",
        " - self.short[buy.pool]",
        "",
        "tests/flow/test_parts_of_purchases.py::test_what_one_zone_has_not_is_not_asked_of_another",
    ),
    Named(
        "flow/cycle/act.py",
        "Act._grow",
        "sending.step.to - self.short",
        "sending.step.to + self.short",
        "tests/flow/test_parts_of_purchases.py::test_what_one_zone_has_not_is_not_asked_of_another",
    ),
    Named(
        "flow/cycle/leftovers.py",
        "_turned",
        '(sending.step.state in CAME or sending.step.call == "grow")',
        "sending.step.state in CAME",
        "tests/flow/test_parts_of_purchases.py::test_a_purchase_that_may_still_land_counts_against_the_limits",
    ),
    Named(
        "flow/cycle/leftovers.py",
        "_turned",
        '(sending.step.state in CAME or sending.step.call == "grow")',
        'sending.step.call == "grow"',
        "tests/flow/test_parts_of_purchases.py::test_a_release_whose_answer_is_lost_counts_against_the_limits_of_ten_minutes",
    ),
    Named(
        "flow/cycle/leftovers.py",
        "_turned",
        '(sending.step.state in CAME or sending.step.call == "grow")',
        '(sending.step.state in CAME and sending.step.call == "grow")',
        "tests/flow/test_parts_of_purchases.py::test_a_release_whose_answer_is_lost_counts_against_the_limits_of_ten_minutes",
    ),
    Named(
        "flow/look/settle.py",
        "settle",
        "entry.broken and snapshot.now < entry.requested_at + _patience(deps)",
        "entry.broken",
        "tests/flow/test_parts_of_purchases.py::test_what_is_left_of_a_broken_purchase_is_forgotten_after_its_deadline",
    ),
    Named(
        "flow/look/settle.py",
        "settle",
        "entry.broken and snapshot.now < entry.requested_at + _patience(deps)",
        "False",
        "tests/flow/test_parts_of_purchases.py::test_what_is_left_of_a_broken_purchase_is_forgotten_after_its_deadline",
    ),
    Named(
        "flow/look/settle.py",
        "settle",
        "entry.broken and snapshot.now < entry.requested_at + _patience(deps)",
        "snapshot.now < entry.requested_at + _patience(deps)",
        "tests/flow/test_settle.py::test_what_came_and_was_used_is_closed",
    ),
)

"""One decision over one look: what to buy, what to keep, what to put out, and why.

The table is the plan: its steps run from top to bottom, each where its condition holds; beside them stands why they
stand there. ``docs/how-it-decides.md`` says the same in one page. A new feature is a file and a row.
"""

from msgspec.structs import replace

from pilotlight.decide.limits.plan_brakes import hold_back
from pilotlight.decide.nodes.spares.demand_rates import count_demand, has_learned
from pilotlight.decide.offers.offerings import tell_stale_prices
from pilotlight.decide.place.room import find_room, place_pods
from pilotlight.decide.work import (
    Look,
    Step,
    Work,
    ask_about_fit,
    ask_for_quotas,
    doubts_fit,
    doubts_quotas,
    has_deadlines,
    has_homes,
    has_images,
    has_unhealthy,
    late,
    order_purchases,
    step,
    write_plan,
)
from pilotlight.facts.decisions import Plan


def always(_: Work) -> bool:
    """True for a step of every plan."""
    return True


# fmt: off
STEPS: tuple[Step, ...] = (
    # The policy of this hour or under its rules, and what queues ask for: before anything is sold by it.
    step("hours", lambda w: bool(w.policy.rules) and w.by_hours, late("limits.policy_schedule", "follow_hours"),
         "by_hours", "policy"),
    step("rules", lambda w: not w.by_hours, late("limits.policy_rules", "follow_rules"),
         "by_hours memory view", "filters policy ruled"),
    step("nodes ahead of queues", lambda w: bool(w.look.ahead), late("demand.queue_demand", "keep_nodes_ahead"),
         "", "policy"),
    step("homed pools", lambda w: bool(w.policy.homed), late("place.homes", "steer_home"),
         "policy view", "steered"),
    # Offerings, as their nodes will be: measured before foretold, daemons before claims, which get what those leave.
    step("volumes", lambda w: any(n.attachable for n in w.view.nodes), late("fit.new_node_room", "limit_volumes"),
         "view", "offerings"),
    step("paid capacity", lambda w: any(o.capacity_type == "reserved" for o in w.offerings),
         late("offers.reserved_capacity", "sell_paid"),
         "policy", "offerings paid"),
    step("joined nodes", lambda w: bool(w.memory.learnt), late("offers.joined_nodes", "sell_as_joined"),
         "memory policy", "offerings"),
    step("first work", lambda w: bool(w.memory.first_work.images), late("offers.first_work", "sell_as_begun"),
         "memory", "offerings"),
    step("starts", lambda w: bool(w.memory.wakes), late("nodes.spares.standby", "sell_as_measured"),
         "memory", "offerings"),
    step("spot lifetimes", lambda w: bool(w.memory.lives) and any(
         o.zone and o.capacity_type == "spot" for o in w.offerings), late("offers.spot_lifetimes", "sell_as_lived"),
         "memory", "offerings"),
    step("daemons", lambda w: bool(w.view.daemons), late("fit.new_node_room", "leave_room_for_daemons"),
         "policy view", "offerings"),
    step("device claims", lambda w: any(shape.claimed is not None for shape in w.view.shapes),
         late("fit.device_claims", "claim_devices"),
         "policy", "offerings view"),
    # Capacity that does not work: no room, and its offering rests, before anything is placed or bought.
    step("failed capacity", lambda w: bool(w.memory.overdue) or any(
         pool.booting or pool.refused for pool in w.look.pools)
         or not all(node.ready for node in w.staying), late("nodes.failed_capacity", "give_failed_back"),
         "by_pool policy staying view", "failed in_doubt memory"),
    step("sick nodes", has_unhealthy, late("nodes.gpu_health", "close_unhealthy"),
         "by_pool staying", "failed findings memory no_room"),
    # Room and headroom: shares of spot count what runs, so they stand before what this plan adds.
    step("spot shares", lambda w: bool(w.policy.teams) or any(
         rules.max_spot_share is not None for rules in w.policy.classes.values()),
         late("offers.spot_share", "count_spot_shares"),
         "policy view", "filters spot_shares"),
    # Deadlines are the last filter: they choose among what all others leave.
    step("job deadlines", has_deadlines, late("job_deadlines.job_deadlines", "keep_deadlines"),
         "view", "filters"),
    step("room", always, lambda: find_room,
         "by_pool failed filters in_doubt memory no_room offerings paid policy spot_shares standing steered view",
         "run usd_per_hour_before"),
    step("infeasible deadlines", lambda w: any(shape.due for shape in w.view.shapes),
         late("job_deadlines.job_deadlines", "refuse_infeasible"),
         "view", "infeasible run"),
    step("images on nodes", has_images, late("place.image_order", "prefer_images"),
         "run view", "run"),
    # Gangs and pods in one step, for they take room from each other.
    step("pods", lambda w: bool(w.view.pending), lambda: place_pods, "infeasible view", "paid run"),
    step("demand", always, lambda: count_demand, "by_pool run view", "counted_to memory"),
    step("spares", lambda w: any(map(has_learned, w.memory.hits.values())),
         late("nodes.spares.spare_nodes", "price_spares"),
         "memory policy relit ruled", "spares"),
    step("spare purchases", lambda w: bool(w.spares) or any(p.spares.warm or p.min for p in w.policy.pools.values()),
         late("nodes.spares.spare_nodes", "buy_spares"),
         "by_pool memory policy spares standing", "paid run spare_buys"),
    step("purchases", always, lambda: order_purchases, "limited run spare_buys", "buys"),
    # Nodes after purchases, whose room is theirs: idle ones first, then those of them that stand by, then old ones.
    step("nodes", lambda w: w.look.releases, late("nodes.scale_down", "judge_nodes"),
         "by_pool failed memory policy relit run spare_buys spares standing", "nodes reserved times"),
    step("standby", lambda w: w.look.releases and any(s.stops for s in w.look.pools),
         late("nodes.spares.standby", "stop_nodes"),
         "by_pool memory policy", "nodes times"),
    step("node ages", lambda w: w.look.releases and any(p.renew.asks for p in w.policy.pools.values()),
         late("nodes.node_age", "renew"),
         "by_pool memory policy reserved standing", "nodes times"),
    step("vain purchases", lambda w: w.look.releases and any(e.vain_since for e in w.memory.in_flight),
         late("nodes.failed_capacity", "take_back"),
         "by_pool failed memory policy reserved run spares standing", "nodes"),
    step("broken gangs", lambda w: bool(w.failed) and not w.look.releases,
         late("nodes.failed_capacity", "give_broken_gangs_back"),
         "failed", "nodes"),
    step("nodes that go", lambda w: bool(w.look.gives or w.memory.refusals), late("nodes.scale_down", "release_named"),
         "memory view", "nodes times"),
    # Words about what was found.
    step("idle nodes", lambda w: bool(w.view.nodes), late("nodes.idle_nodes", "explain_idle_nodes"),
         "memory no_room offerings run view", "pods"),
    step("blocked nodes", lambda w: bool(w.nodes), late("nodes.scale_down", "tell_blocked"),
         "nodes", "findings"),
    step("stale prices", always, lambda: tell_stale_prices,
         "by_pool policy", "findings"),
    step("paid and unused", lambda w: bool(w.paid), late("offers.reserved_capacity", "tell_paid"),
         "buys by_pool paid policy", "findings paid_idle"),
    step("plan", always, lambda: write_plan,
         "buys counted_to findings memory nodes paid_idle pods run times usd_per_hour_before view", "plan"),
    step("rules named", lambda w: w.ruled is not None, late("limits.policy_rules", "name_rules"),
         "ruled", "plan"),
    # Brakes last, on the whole plan; homes follow the plan that is left.
    step("brakes", always, lambda: hold_back,
         "policy", "plan"),
    step("homes", has_homes, late("place.homes", "place_homes"),
         "by_pool memory no_room policy run standing steered view", "plan"),
    # Questions last: one new plan is made where their answers change anything.
    step("doubt about fit", doubts_fit, lambda: ask_about_fit, "memory plan", "again"),
    step("account quotas", doubts_quotas, lambda: ask_for_quotas, "plan", "again"),
)
# fmt: on


def plan_cluster(look: Look) -> Plan:
    """The whole plan. Pure: equal looks give equal plans, in whatever order pods, nodes and offerings come."""
    work = Work(look)
    for step_ in STEPS:
        if step_.when(work):
            step_.load()(work)
    return replace(work.plan, again=work.again) if work.again else work.plan

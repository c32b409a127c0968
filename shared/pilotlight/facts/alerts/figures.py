"""Pilotlight's own figures, as they are exported: one description for the page, the dashboards and the alerts.

All are worked out of the shared state when somebody asks, so that every worker tells the same: gauges of what is,
counters and histograms of sums that decisions leave in their cluster's memory.
"""

from typing import Literal, NamedTuple

Kind = Literal["gauge", "counter", "histogram"]


class Family(NamedTuple):
    """One figure: its name (a counter's without its ``_total``), its labels' names, what it says, and its kind."""

    name: str
    labels: tuple[str, ...]
    what: str
    kind: Kind = "gauge"


class Sample(NamedTuple):
    """One value of a figure. ``labels`` are in the family's order.

    A histogram's ``value`` is its sum, and ``counts`` are how many fell up to each of ``facts.tally.BOUNDS``, and
    above the last, each counted once.
    """

    family: str
    labels: tuple[str, ...]
    value: float
    counts: tuple[int, ...] = ()


BUDGET = ("cluster", "budget")

FAMILIES = (
    Family("pilotlight_budget_limit_usd", BUDGET, "what a budget allows in the window that runs now"),
    Family("pilotlight_budget_spent_usd", BUDGET, "what is billed, and metered for the time no bill covers yet"),
    Family("pilotlight_budget_held_usd", BUDGET, "what is settled and held: what purchases are judged by"),
    Family("pilotlight_budget_left_usd", BUDGET, "what purchases may still take; below zero it was passed"),
    Family("pilotlight_budget_forecast_usd", BUDGET, "what the window will have cost at its end, as it goes now"),
    Family(
        "pilotlight_metered_today_usd",
        ("cluster", "pool", "team"),
        "what nodes cost since midnight UTC, by whose it is",
    ),
    Family("pilotlight_nodes", ("cluster", "pool"), "nodes that are paid for, with those that boot"),
    Family("pilotlight_usd_per_hour", ("cluster",), "what those nodes cost an hour, where prices are known"),
    Family("pilotlight_nodes_unpriced", ("cluster",), "those nodes whose price is not known: they are in no dollars"),
    Family("pilotlight_pods_waiting", ("cluster",), "GPU pods that have no node yet"),
    Family("pilotlight_holds_open", ("cluster",), "budget holds that are not settled"),
    Family("pilotlight_purchases_in_flight", ("cluster",), "purchases that were sent and have not joined yet"),
    Family("pilotlight_decisions_open", ("cluster",), "decisions whose calls are not all settled"),
    Family("pilotlight_interruptions_open", ("cluster",), "interrupted nodes whose work is being carried over"),
    Family("pilotlight_paused", ("cluster", "pool"), "1 for what a person paused; * is all pools"),
    Family(
        "pilotlight_silent_seconds",
        ("cluster",),
        "for how long cluster or cloud have not answered a tick; 0 where they do",
    ),
    Family("pilotlight_counted_timestamp_seconds", ("cluster",), "when nodes were last counted"),
    Family("pilotlight_credential_ends_timestamp_seconds", ("cluster",), "when the token for the API server ends"),
    Family("pilotlight_price_age_seconds", ("cluster", "pool"), "how old the price of a pool is, where it is dated"),
    Family(
        "pilotlight_price_usd_per_hour", ("cluster", "pool"), "the price of a node of a pool, the highest of its zones"
    ),
    Family("pilotlight_alerts_waiting", ("channel",), "alerts that are not told yet"),
    Family(
        "pilotlight_alerts_given_up", ("channel",), "alerts that a channel did not take: pilotlight alerts redeliver"
    ),
    Family(
        "pilotlight_wait_seconds",
        ("cluster", "phase"),
        "how long pods waited that a node was bought for, by phase: detect (created until the look that buys), then "
        "decide (until the call). Then come boot (from the look until a node is ready), bind (until the pod is on it)",
        "histogram",
    ),
    Family(
        "pilotlight_first_work_seconds",
        ("cluster", "pool", "step"),
        "usual seconds of a new node by step. boot is until it is Ready, plugin until a pod is bound. Then come "
        "pull (of its images) and start (of its containers)",
    ),
    Family("pilotlight_cycle_seconds", ("cluster",), "how long looks took that made calls", "histogram"),
    Family(
        "pilotlight_calls",
        ("cluster", "call", "outcome"),
        "calls to the cloud that were decided, grow or release, by what became of them: done, denied, revoked, sent",
        "counter",
    ),
    Family("pilotlight_refusals", ("cluster", "kind"), "purchases that a cloud or a budget refused", "counter"),
    Family(
        "pilotlight_decisions",
        ("cluster", "verdict"),
        "decisions that made calls or told something, once for each verdict in them: fits, booting, bought, waiting, "
        "refused or finding of pods, release of nodes",
        "counter",
    ),
    Family(
        "pilotlight_state_operations",
        ("cluster", "operation"),
        "what workers asked of the state up to their last decision: read, scan, write, conflict",
        "counter",
    ),
    Family(
        "pilotlight_looks_again", ("cluster",), "looks taken again for events that found another at work", "counter"
    ),
    Family(
        "pilotlight_pods_taking_homes",
        ("cluster",),
        "pods that tolerate homes which nobody gave them, each as it is told",
        "counter",
    ),
    Family(
        "pilotlight_isolated_errors",
        ("cluster", "object", "stage"),
        "unexpected errors that cost one object of a look each, by the kind of object and by the file that raised",
        "counter",
    ),
    Family(
        "pilotlight_dead_letters", (), "events that were refused and lie in the outbox's folder, with their reasons"
    ),
)
"""Every figure, in the order of the page."""

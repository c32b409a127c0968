"""Pilotlight's own figures, as they are exported: one description for the page, the dashboards and the alerts.

All are gauges that are worked out of the shared state when somebody asks, so that every worker tells the same.
"""

from typing import NamedTuple


class Family(NamedTuple):
    """One figure: its name, the names of its labels, and what it says."""

    name: str
    labels: tuple[str, ...]
    what: str


class Sample(NamedTuple):
    """One value of a figure. ``labels`` are in the family's order."""

    family: str
    labels: tuple[str, ...]
    value: float


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
)
"""Every figure, in the order of the page."""

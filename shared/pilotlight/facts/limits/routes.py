"""Routes: every path that is served, the methods it takes, and the right that each needs.

One table for every place. A path that is not in it is 404, a method that is not is 405. ``docs/guides/access.md``
prints it, and a test holds the two together.
"""

from typing import Literal, NamedTuple

import msgspec

RouteRight = Literal["send", "read", "operate", "approve", "acknowledge"]
By = Literal["header", "path", "signature", "link"]
Where = Literal["function", "serve", "world"]


class Route(NamedTuple):
    """One path and method. Any of ``rights`` opens it; without any it is the cloud's
    authentication that does, and at ``serve`` anybody: what only says that it is there."""

    where: Where
    path: str
    method: str
    rights: tuple[RouteRight, ...]
    what: str


class Caller(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A caller that may come in: the secret it shows, how it is shown, and the rights it has. ``link`` is the key that
    alerts' links are signed with: whoever has one may acknowledge that alert."""

    token: str
    roles: tuple[RouteRight, ...] = ("send",)
    by: By = "header"

    def __repr__(self) -> str:
        """Without the secret."""
        return f"Caller(roles={self.roles}, by={self.by})"


FUNCTIONS = (
    "pod_pending",
    "kueue_admission",
    "capacity_reconcile",
    "billing_tick",
    "billing_import",
    "spot_interruption",
    "alert_fanout",
)

DRY = "?dryrun=1"
"""Marks the row of a dry run: asked for by this argument or the header ``x-pilotlight-dryrun``."""

IN = "/in/{source}/{token}/{function}"
"""For sources that cannot set headers: the path itself has their token."""

ROUTES: tuple[Route, ...] = (
    Route("function", "/", "POST", (), "an event for the function that is deployed there"),
    *(Route("serve", f"/{name}", "POST", ("send",), "an event for this function") for name in FUNCTIONS),
    *(
        Route("serve", f"/{name}{DRY}", "POST", ("send", "read"), "what it would do; nothing changes")
        for name in FUNCTIONS
    ),
    Route("serve", "/healthz", "GET", (), "whether the process answers"),
    Route("serve", "/readyz", "GET", (), "whether settings are read and the state answers"),
    Route("serve", "/metrics", "GET", ("read",), "its own figures, for Prometheus"),
    Route("serve", "/", "GET", (), "the live page, without a figure in it"),
    Route("serve", "/live", "GET", ("read",), "what the live page shows of a cluster, and then what is new"),
    Route("serve", "/decision", "GET", ("read",), "one decision as the live page opens it: pods, options and prices"),
    Route("serve", "/keda/{queue}", "GET", ("read",), "how many workers a queue asks for, for KEDA's metrics-api"),
    Route("serve", "/ack", "GET", (), "the page that an alert's link opens, without an alert in it"),
    Route("serve", "/alert", "GET", ("read", "acknowledge"), "one alert, and who sees to it; nothing changes"),
    Route("serve", "/alert", "POST", ("acknowledge",), "acknowledge that alert"),
    Route("serve", IN, "POST", ("send",), "the same, from a source that cannot set headers"),
    Route("serve", "/world/pods", "POST", ("operate",), "create a pod in serve's own world; not beside a real cluster"),
    Route("world", "/cluster/{method}", "POST", ("operate",), "the cluster's port"),
    Route("world", "/pools/{method}", "POST", ("operate",), "the cloud's port"),
    Route("world", "/pods", "POST", ("operate",), "create pods"),
    Route("world", "/interrupt", "POST", ("operate",), "take an instance"),
    Route("world", "/faults", "PUT", ("operate",), "what goes wrong from now on"),
    Route("world", "/faults", "GET", ("read",), "what goes wrong"),
    Route("world", "/pods", "GET", ("read",), "every pod, its state and its node"),
    Route("world", "/told", "GET", ("read",), "the Events written on pods"),
    Route("world", "/clock", "GET", ("read",), "the moment, and the speed"),
    Route("world", "/report", "GET", ("read",), "cost, launches, resizes, pods by state"),
)
"""``serve`` and the home are one; ``world`` listens on this machine alone, and asks for no token."""

"""`pilotlight drill`: a node of a served world is interrupted, and what becomes of it is printed."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.errors import BadInput, Failed
from pilotlight.settings import deployed_settings
from pilotlight.units import Seconds

if TYPE_CHECKING:
    from pilotlight.adapters.world_client import WorldClient
    from pilotlight.facts.interruption.interruption import Interruption
    from pilotlight.wiring import App

LOOK_S: Seconds = 0.5
"""How often a drill looks, by the wall's clock."""

BOOT_S: Seconds = 1800
"""Seconds of the world for which a drill waits for a node: longer than any boots."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(drill)


def drill(
    pool: Annotated[str, typer.Option(help="The pool of the node that is interrupted.")] = "",
    instance: Annotated[str, typer.Option(help="The instance itself.")] = "",
    notice: Annotated[float, typer.Option(min=1, help="Seconds of notice.")] = 120,
    as_json: Annotated[bool, typer.Option("--json", help="The interruption's record, as JSON.")] = False,
) -> None:
    """Interrupt a node of a served world, as a cloud would, and print what becomes of it.

    Needs a running [bold]pilotlight serve[/bold] over the same state, or PILOTLIGHT_WORLD with a world's address.

    Example: [bold]pilotlight drill --pool t4 --notice 120[/bold]
    """
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    client = wired.served_world
    if client is None:
        raise BadInput(
            "a drill needs a served world: run pilotlight serve, or set PILOTLIGHT_WORLD to a world's address"
        )
    client.pods()  # A world that does not answer makes no state.
    record = _drilled(wired, client, instance or _one_of(wired, client, pool), notice)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(record))
        return
    from pilotlight.tools.report.texts.interruption_text import lines

    typer.echo("\n".join(lines(record)))


def _one_of(wired: "App", client: "WorldClient", pool: str) -> str:
    """A ready node of the pool, one with work on it before others; waits while a pod waits for its node."""
    from time import sleep

    if pool and pool not in wired.policy.pools:
        raise BadInput(f"the policy has no pool {pool!r}: there are {', '.join(wired.policy.pools)}")
    until, told = wired.deps.clock.now() + timedelta(seconds=BOOT_S), False
    while True:
        nodes = [n for n in wired.deps.cluster.observe().nodes if n.ready and pool in ("", n.pool)]
        waits = any(pod.state == "pending" for pod in client.pods()) and wired.deps.clock.now() < until
        if nodes or not waits:
            break
        if not told:
            typer.echo(f"waiting for a node{f' of pool {pool}' if pool else ''} to be ready", err=True)
        told = True
        sleep(LOOK_S)
    if not nodes:
        which, other = (f" of pool {pool}", ", or name another pool") if pool else ("", "")
        raise BadInput(f"no node{which} is ready: send a pod and wait for its node{other}")
    return max(nodes, key=lambda n: (len(n.gpu_pods), n.name)).instance


def _drilled(wired: "App", client: "WorldClient", instance: str, notice_s: Seconds) -> "Interruption":
    """Interrupt, tell the function, and look until it is over or the deadline is long gone."""
    from time import sleep

    from pilotlight.codec.events import encode
    from pilotlight.facts.messages import InterruptionNotice, Tick
    from pilotlight.flow.budgets.interruption_records import find

    deps = wired.deps
    doomed = client.interrupt(instance, notice_s)
    notice = InterruptionNotice(
        cluster=deps.name, instance=instance, kind="spot-interruption", cloud="world",
        zone=doomed.zone, at=deps.clock.now(), deadline=doomed.deadline,
    )  # fmt: skip
    wired.receive("spot_interruption", encode(notice, id=f"drill-{instance}"), {})
    while (kept := find(deps, instance)) is not None and not kept.found.is_over:
        if (deps.clock.now() - doomed.deadline).total_seconds() > notice_s:
            raise Failed(f"{instance} is still being drained long after its deadline: see pilotlight why {instance}")
        sleep(LOOK_S)
        tick = Tick(cluster=deps.name, what="rescue", at=deps.clock.now())
        wired.receive("spot_interruption", encode(tick, id=f"drill-{instance}-{tick.at}"), {})
    if kept is None:
        raise Failed(f"the notice of {instance} was not taken: see the log with --debug")
    return kept.found

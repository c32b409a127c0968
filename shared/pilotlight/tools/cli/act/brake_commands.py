"""``pilotlight pause``, ``resume`` and ``approve``: the brakes in a person's hand."""

import getpass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import BadInput, Failed
from pilotlight.facts.decisions import Record
from pilotlight.flow.records import brake_records, ledger
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.state_option import line_of_brake
from pilotlight.units import cents

if TYPE_CHECKING:
    from pilotlight.wiring import App

Pool = Annotated[str, typer.Option(help="Only this pool; left out: all of them.")]
MOST_NAME = 80
AsJson = Annotated[bool, typer.Option("--json", help="The outcome as JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (pause, resume, approve):
        app.command()(command)


def pause(
    reason: Annotated[str, typer.Option(help="Why; it is shown wherever an effect is stopped.")],
    pool: Pool = "",
    as_json: AsJson = False,
) -> None:
    """Stop every effect at the next call: nothing is bought, nothing is released. Nodes that run stay.

    Example: pilotlight pause --pool a100 --reason "price check"
    """
    if not reason.strip():
        raise BadInput("--reason is empty: say why, it is shown wherever an effect is stopped")
    head, wired = line_of_brake(), _wired()
    _known(wired, pool)
    brake_records.pause(wired.state, wired.settings.cluster_name, pool, reason, wired.clock.now(), person())
    _say({"paused": pool or "all pools", "reason": reason}, head, as_json)


def person() -> str:
    """Name of the person who runs this command, as the machine knows them: it is no proof."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def named_person(by: str) -> str:
    """The person of ``--by``, else the one who runs this. Raises ``BadInput`` where no line can show the name."""
    name = by.strip() or person()
    if len(name) > MOST_NAME or not name.isprintable():
        raise BadInput(f"--by: write the name of a person, on one line and of {MOST_NAME} letters at most")
    return name


def resume(pool: Pool = "", as_json: AsJson = False) -> None:
    """Take a pause back.

    Example: pilotlight resume --pool a100
    """
    head, wired = line_of_brake(), _wired()
    _known(wired, pool)
    if not brake_records.resume(wired.state, wired.settings.cluster_name, pool):
        raise Failed(f"{pool or 'all pools'}: not paused")
    _say({"resumed": pool or "all pools"}, head, as_json)


def approve(
    decision: Annotated[str, typer.Argument(help="The decision that waits, as the alert names it.")],
    by: Annotated[str, typer.Option(help="Name of the person who allows it; left out: this machine's user.")] = "",
    as_json: AsJson = False,
) -> None:
    """Allow what a decision wanted to buy beyond approve_over; the next look at the cluster buys it.

    Example: pilotlight approve 01782864000000-723475b2
    """
    by = named_person(by)
    head, wired = line_of_brake(), _wired()
    cluster = wired.settings.cluster_name
    record = ledger.filed_decision(wired.state, cluster, decision)
    if record is None:
        raise Failed(f"no decision {decision!r} of the last 30 days: take its id from the alert or `pilotlight why`")
    waiting = _waiting(record)
    if not waiting:
        raise Failed(f"decision {decision} waits for no approval")
    brake_records.approve(wired.state, cluster, decision, waiting, wired.state.now(), by)
    nodes = ", ".join(f"{count} of pool {pool}" for pool, count in waiting.items())
    held = [one for one in record.plan.held if one.code == "approval" and one.buy]
    more = cents(sum((one.buy.usd_per_hour * one.count for one in held if one.buy), Decimal(0)))
    said = f"approved once{f' by {by}' if by else ''}, for an hour: {nodes}, {more}/h"
    _say({"approved": waiting, "decision": decision, "by": by}, head, as_json, said)


def _waiting(record: Record) -> dict[str, int]:
    """The nodes that wait for approval, by pool."""
    waiting: dict[str, int] = {}
    for held in record.plan.held:
        if held.code == "approval":
            waiting[held.action.pool] = waiting.get(held.action.pool, 0) + held.count
    return waiting


def _wired() -> "App":
    from pilotlight.wiring import app

    return app(deployed_settings())


def _known(wired: "App", pool: str) -> None:
    if pool and pool not in wired.policy.pools:
        raise BadInput(f"no pool {pool!r} in the policy: it has {', '.join(wired.policy.pools) or 'none'}")


def _say(outcome: dict[str, object], head: str, as_json: bool, said: str = "") -> None:
    if as_json:
        typer.echo(msgspec.json.encode(outcome).decode())
        return
    from pilotlight.tools.cli.printing import console

    console().print(head, markup=False)
    typer.echo(said or ", ".join(f"{key} {value}" for key, value in outcome.items()))

"""``pilotlight alerts``: try a channel, see what was told and what waits, send again what was given up."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight import typed_json
from pilotlight.errors import BadInput, Conflict, Failed, PilotlightError, Reject
from pilotlight.facts.alerts.delivery_records import Telling
from pilotlight.facts.messages import Alert
from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.act.brake_commands import named_person
from pilotlight.tools.cli.state_option import cluster_line, line_of_records
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.flow.delivery.desk import Desk
    from pilotlight.wiring import App

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Try a channel; see what was told; send again what was given up.")
    group.command("test")(try_)
    group.command("list")(list_)
    group.command("redeliver")(redeliver)
    group.command("ack")(ack)
    app.add_typer(group, name="alerts")


def try_(
    channel: Annotated[str, typer.Option(help="The channel's name in the policy.")],
    severity: Annotated[str, typer.Option(help="info, warning or critical.")] = "info",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent; send nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send one alert to one channel, whatever its routes and quiet hours say. Nothing is kept in the state.

    Example: [bold]pilotlight alerts test --channel ops --dry-run[/bold]
    """
    wired = _wired()
    _known(wired, channel)
    alert = _sample(wired, severity)
    kind = wired.policy.alerts.channels[channel].kind
    if dry_run:
        _ = wired.channels[channel]
        return _say({"channel": channel, "kind": kind, "sent": False, "alert": _text(alert)}, as_json)
    try:
        receipt = wired.channels[channel].deliver(alert)
    except PilotlightError as error:
        raise (BadInput if isinstance(error, Reject) else Failed)(f"channel {channel}: {error}") from None
    _say({"channel": channel, "kind": kind, "sent": True, "receipt": receipt}, as_json)


def list_(
    channel: Annotated[str, typer.Option(help="Only this channel.")] = "",
    as_json: AsJson = False,
) -> None:
    """List what was told, when, where and under which of the provider's names; what waits, and what was given up.

    Example: [bold]pilotlight alerts list --channel ops[/bold]
    """
    from pilotlight.state_schema.alert_records import PROOF, WAITING

    wired = _wired()
    if channel:
        _known(wired, channel)
    kept = [entry.value for table in (PROOF, WAITING) for entry in table.scan(wired.alerts)]
    found = [telling for last in kept for telling in (last.began, last) if telling is not None]
    head = _line(wired)
    found = sorted((t for t in found if channel in ("", t.channel)), key=lambda telling: telling.at)
    if as_json:
        alone = [msgspec.structs.replace(telling, began=None) for telling in found]
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(alone))
        return
    from pilotlight.tools.cli.printing import console

    console().print(head, markup=False)
    if not found and not wired.policy.alerts.channels:
        typer.echo("the policy has no channels, so nobody is told anything: add one under alerts.channels")
    else:
        _table(found)


def redeliver(
    channel: Annotated[str, typer.Option(help="Only this channel.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be sent again; send nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send again what was given up in the last two weeks.

    Example: [bold]pilotlight alerts redeliver --channel ops --dry-run[/bold]
    """
    from pilotlight.flow.delivery.desk import proof

    wired = _wired()
    if channel:
        _known(wired, channel)
    head, desk = _line(wired), _desk(wired)
    dead = try_anew(desk, channel, dry_run=dry_run)
    now = [proof(desk.state, t.channel, t.alert) or t for t in dead]
    told = sum(telling.status == "told" for telling in now)
    if as_json:
        typer.echo(msgspec.json.encode({"dry_run": dry_run, "tried": len(dead), "told": told}).decode())
        return
    typer.echo(head)
    for telling in dead if dry_run else now:
        typer.echo(
            f"{telling.channel}: {telling.alert.what} ({telling.status}{': ' if telling.why else ''}{telling.why})"
        )
    verb = "would try again" if dry_run else "tried again"
    typer.echo(f"{verb} {count_of(len(dead), 'alert')}" + ("" if dry_run else f", told {told}"))


def try_anew(desk: "Desk", channel: str = "", *, dry_run: bool = False) -> list[Telling]:
    """Alerts that were given up, on one channel or on all, which are tried anew unless it is a dry run."""
    from pilotlight.flow.delivery.desk import waiting_name
    from pilotlight.flow.delivery.flush import flush
    from pilotlight.ports.state import ABSENT
    from pilotlight.state_schema.alert_records import PROOF, WAITING

    found = [entry.value for entry in PROOF.scan(desk.state)]
    dead = [entry for entry in found if entry.status == "gave up" and channel in ("", entry.channel)]
    now = desk.now()
    for entry in () if dry_run else dead:
        fresh = msgspec.structs.replace(entry, status="waits", since=now, at=now, due=now, attempts=0, held=False)
        with suppress(Conflict):
            WAITING.put(desk.state, waiting_name(entry.channel, entry.alert), fresh, if_version=ABSENT)
    if dead and not dry_run:
        flush(desk)
    return dead


def ack(
    what: Annotated[str, typer.Argument(help="A fingerprint, as each alert shows it last, or a decision's id.")],
    by: Annotated[str, typer.Option(help="The person who sees to it.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be acknowledged; write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Acknowledge an alert: somebody sees to it, so it goes on to no further channel until it is over.

    Example: [bold]pilotlight alerts ack finding-selector/1a2b3c --by ann[/bold]
    """
    from pilotlight.flow.delivery.desk import acknowledged_by
    from pilotlight.state_schema.alert_records import PROOF, WAITING
    from pilotlight.tools.serve.acknowledging import acknowledge

    who, wired = named_person(by) or "a person", _wired()
    head = _line(wired)
    known = (entry.value.alert for table in (PROOF, WAITING) for entry in table.scan(wired.alerts))
    found = {(a.cluster, a.fingerprint): a for a in known if not a.resolved and what in (a.fingerprint, a.decision)}
    if not found:
        raise Failed(f"no alert {what!r} is told or waits: look with `pilotlight alerts list --json`")
    said = []
    for alert in found.values():
        new = dry_run or acknowledge(wired.alerts, alert, who)
        first = who if new else acknowledged_by(wired.alerts, alert)
        said.append({"cluster": alert.cluster, "fingerprint": alert.fingerprint, "what": alert.what, "by": first})
    if as_json:
        typer.echo(msgspec.json.encode({"dry_run": dry_run, "alerts": said}).decode())
        return
    typer.echo(head)
    for one in said:
        typer.echo(f"{one['what']}: {'would be seen to' if dry_run else 'seen to'} by {one['by']}")


def _known(wired: "App", channel: str) -> None:
    if channel not in wired.policy.alerts.channels:
        names = ", ".join(wired.policy.alerts.channels) or "none"
        raise BadInput(f"no channel {channel!r} in the policy: it has {names}")


def _wired() -> "App":
    from pilotlight.wiring import app

    return app(deployed_settings())


def _line(wired: "App") -> str:
    """The line that an answer begins with. Alerts that lie elsewhere are named by their own variable."""
    return cluster_line(known=True) if wired.settings.alerts else line_of_records(wired.state)


def _desk(wired: "App") -> "Desk":
    from pilotlight.flow.delivery.desk import Desk

    return Desk(
        channels=wired.channels,
        policy=wired.policy.alerts,
        state=wired.alerts,
        outbox=wired.outbox,
        link_key=wired.settings.link_key,
    )


def _sample(wired: "App", severity: str) -> Alert:
    now = wired.clock.now()
    fields = {
        "cluster": wired.clusters[0],
        "kind": "test",
        "severity": severity,
        "fingerprint": f"test/{now:%Y%m%dT%H%M%S}",
        "what": "this is a test of Pilotlight's alerts",
        "why": "somebody ran pilotlight alerts test",
        "next": "nothing",
        "how": "nothing is to be done",
        "usd_per_hour": "0",
        "at": now,
    }
    try:
        return typed_json.convert(fields, Alert)
    except msgspec.ValidationError:
        raise BadInput(f"--severity is {severity!r}: use info, warning or critical") from None


def _text(alert: Alert) -> str:
    from pilotlight.codec.alert_text import plain

    return "\n".join(plain(alert))


def _say(outcome: dict[str, object], as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(outcome).decode())
    elif outcome["sent"]:
        receipt = f" ({outcome['receipt']})" if outcome["receipt"] else ""
        typer.echo(f"sent to {outcome['channel']}, a {outcome['kind']}{receipt}")
    else:
        typer.echo(f"would send to {outcome['channel']}, a {outcome['kind']}:\n{outcome['alert']}")


def _table(found: Sequence[Telling]) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    heads = (Column(name) for name in ("when (UTC)", "channel", "severity", "status", "what"))
    table = Sheet(*heads, Column("proof", "name"))
    for telling in found:
        ended = telling.alert.resolved and telling.status != "over"
        what = ("over: " if ended else "") + telling.alert.what
        when, severity = f"{telling.at:%m-%d %H:%M:%S}", telling.alert.severity
        table.add(when, telling.channel, severity, _status(telling), what, telling.receipt)
    console().print(table if found else "no alert was told lately, and none waits")


def _status(telling: Telling) -> str:
    more = [f"as one of {telling.grouped}"] if telling.grouped else []
    more += [f"until {telling.due:%H:%M:%S}, {telling.why}"] if telling.status == "waits" and telling.due else []
    more += [telling.why] if telling.status == "gave up" else []
    more += [f"{telling.attempts} failed"] if telling.attempts else []
    more += [f"perhaps shown {count_of(telling.unsure, 'time')} more"] if telling.unsure else []
    return telling.status + (f" ({'; '.join(more)})" if more else "")

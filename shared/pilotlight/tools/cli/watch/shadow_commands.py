"""``pilotlight shadow``: what advice would have done beside what the pools' present autoscaler did."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pilotlight.settings import deployed_settings
from pilotlight.tools.cli.state_option import line_of_records
from pilotlight.units import cents, count_of, human

if TYPE_CHECKING:
    from pilotlight.decide.limits.canary import Side
    from pilotlight.tools.advice.beside_advice import BesideAdvice, Hurt

SHOWN = 10
"""Advice that would have hurt, printed by pool; ``--json`` has all."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Advised beside what was done instead, in pools of mode advise.")
    group.callback()(lambda: None)
    group.command("report")(report)
    group.command("canary")(canary)
    app.add_typer(group, name="shadow")


def report(
    days: Annotated[int, typer.Option(min=1, max=35, help="How far back is looked.")] = 7,
    cluster: Annotated[str, typer.Option(help="One of many clusters; the one that is set where none is named.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Every figure, and all advice that would have hurt.")] = False,
) -> None:
    """Set what advise would have bought and released beside what was done: dollars, waits, and advice that hurts.

    Reads only the state, which the ticks of a cluster in mode advise fill. Example: [bold]pilotlight shadow report
    --days 7[/bold]
    """
    from pilotlight.flow.billing import meter_nodes
    from pilotlight.tools.advice.beside_advice import advice_since, compare_with_advice
    from pilotlight.tools.cli.month_option import chosen_clusters
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    name = cluster or wired.settings.cluster_name
    if cluster:
        chosen_clusters(cluster, wired.clusters)
    head, now = line_of_records(wired.state), wired.state.now()
    since = now - timedelta(days=days)
    advice = advice_since(wired.state, name, since)
    metered = meter_nodes.days(wired.state, name, since.date(), now.date())
    rows = compare_with_advice(advice, metered, wired.for_cluster(name).deps.policy.value_of_wait, now)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text({"cluster": name, "since": since, "until": now, "pools": [_plain(row) for row in rows]}))
        return
    from pilotlight.tools.cli.printing import console

    console().print(head, markup=False)
    if not advice:
        typer.echo(
            f"no advice of cluster {name} ended in the last {count_of(days, 'day')}: its pools are not in mode advise, "
            "nothing was to be done in them, or nobody ticks",
            err=True,
        )
    _show(rows, f"{since:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M} UTC")


def canary(
    cluster: Annotated[str, typer.Option(help="One of many clusters; the one that is set where none is named.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Every figure.")] = False,
) -> None:
    """Show pools of mode canary beside their controls, with the bounds, and whether one was passed.

    Reads only the state. Example: [bold]pilotlight shadow canary[/bold]
    """
    from pilotlight.decide.limits.canary import passed_bound
    from pilotlight.flow.billing import meter_nodes
    from pilotlight.flow.billing.canary_check import DAYS, sides
    from pilotlight.flow.records import brake_records
    from pilotlight.tools.cli.month_option import chosen_clusters
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    name = cluster or wired.settings.cluster_name
    if cluster:
        chosen_clusters(cluster, wired.clusters)
    head = line_of_records(wired.state)
    deps, now = wired.for_cluster(name).deps, wired.state.now()
    days = meter_nodes.days(wired.state, name, now.date() - timedelta(days=DAYS - 1), now.date())
    found: list[dict[str, Any]] = []
    for pool, rules in deps.policy.pools.items():
        if rules.canary is not None:
            both = sides(deps, (pool, rules.canary.control), days, now)
            over = brake_records.pause_reason(wired.state, name, pool) or passed_bound(both[0], both[1], rules.canary)
            found.append({"pool": pool, "bounds": rules.canary, "sides": both, "over": over})
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        plain = [{**one, "sides": [_figures(each) for each in one["sides"]]} for one in found]
        typer.echo(json_text({"cluster": name, "days": DAYS, "canaries": plain}))
        return
    from pilotlight.tools.cli.printing import console

    console().print(head, markup=False)
    if not found:
        typer.echo("no pool of the policy has mode: canary", err=True)
    _show_canaries(found, DAYS)


def _figures(side: "Side") -> dict[str, Any]:
    return {**side._asdict(), "usd_per_used_gpu_hour": side.usd_per_used_hour}


def _show_canaries(found: list[dict[str, Any]], days: int) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    out = console()
    for one in found:
        figures = ("cost", "of it idle", "used GPU-h", "$ a used GPU-h", "on its way", "refused in a row")
        table = Sheet(Column("pool", "name"), *(Column(name, "figure") for name in figures))
        for side, what in zip(one["sides"], ("canary", "control"), strict=True):
            used = f"{side.used_gpu_hours:.1f}"
            dollars = (_usd(side.usd), _usd(side.idle_usd), used, _usd(side.usd_per_used_hour))
            table.add(f"{side.pool} ({what})", *dollars, human(side.wait_s), str(side.refusals))
        out.print(table)
        out.print(f"{one['pool']}: {one['over'] or 'within its bounds'}")
    if found:
        out.print(f"The last {count_of(days, 'day')}; what boots and idles is in the dollars a used GPU-hour.")


def _plain(row: "BesideAdvice") -> dict[str, Any]:
    hurt = [{"why": one.why, "usd": one.usd, "wait_s": one.wait_s, "advice": one.advice} for one in row.hurt]
    return {**row._asdict(), "hurt": hurt}


def _show(rows: "list[BesideAdvice]", span: str) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    figures = ("nodes", "cost", "of it idle", "would buy", "would release", "saved", "waited", "would wait")
    table = Sheet(Column("pool", "name"), *(Column(name, "figure") for name in figures))
    for row in rows:
        mean, would = (s / row.served if row.served else None for s in (row.waited_s, row.would_s))
        added = f" + {human(row.added_s)}" if row.added_s else ""
        table.add(
            row.pool,
            str(row.nodes),
            _usd(row.usd),
            _usd(row.idle_usd),
            str(row.buys),
            str(row.releases),
            _usd(row.saved_usd),
            human(mean) if mean is not None else "",
            (human(would) if would is not None else "") + added,
        )
    out = console()
    out.print(f"Advised beside what was done, {span}")
    out.print(table)
    for row in rows:
        for hurt in row.hurt[:SHOWN]:
            out.print(_hurt(hurt))
        if len(row.hurt) > SHOWN:
            out.print(f"{row.pool}: and {len(row.hurt) - SHOWN} more that would have hurt; --json has all")
        if row.unpriced:
            out.print(f"{row.pool}: {row.unpriced} without a known price are in no dollars")
    out.print(
        "Saved is what nodes cost after they were advised to go, less lighting others where work came back. Waits are "
        "of purchases, from the advice; what is added is for nodes that would have been gone."
    )


def _hurt(hurt: "Hurt") -> str:
    advice = hurt.advice
    did = f"release {advice.target}" if advice.call == "release" else f"buy {advice.count} x {advice.target}"
    wait = f" and {human(hurt.wait_s)} of waiting" if hurt.wait_s else ""
    return f"would have hurt: {did} at {advice.at:%Y-%m-%d %H:%M} UTC: {hurt.why}; {_usd(hurt.usd)}{wait}"


def _usd(usd: Any) -> str:
    return "" if usd is None else cents(usd)

"""``pilotlight conformance``: tries on your own cloud what is promised of it, for at most so many dollars."""

import hashlib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from pilotlight.errors import BadInput, Failed
from pilotlight.settings import deployed_settings, environment
from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.units import Usd, cents, count_of

if TYPE_CHECKING:
    from pilotlight.facts.capacity import Offering
    from pilotlight.tools.conformance.conformance_run import Tried
    from pilotlight.wiring import App

CLOUDS = {"aws": "asg", "civo": "civo", "gke": "gke", "karpenter": "karpenter"}
"""What the addresses in PILOTLIGHT_POOLS begin with."""
SAYS_FIRST = ("gke", "karpenter")
"""Without --for-real they are asked for nothing."""
MOST_S = 2 * 600.0
"""The node is lit so long at most: until it is told, and until it is gone."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(conformance)


def conformance(
    pool: Annotated[str, typer.Option(help="A pool of the policy without work on it: a sandbox's.")],
    max_usd: Annotated[float, typer.Option(help="Dollars that it may cost at most.")],
    cloud: Annotated[
        Literal["aws", "civo", "gke"] | None, typer.Option(help="The cloud that PILOTLIGHT_POOLS names.")
    ] = None,
    karpenter: Annotated[
        bool, typer.Option("--karpenter", help="Instead of --cloud: nodes by claims of the cluster's Karpenter.")
    ] = False,
    quota_pool: Annotated[
        str, typer.Option(help="A pool that the account's quota has no room for: a purchase there must be refused.")
    ] = "",
    dry_run: Annotated[
        bool | None,
        typer.Option(
            "--dry-run/--for-real", help="Say what it would cost; without --for-real all that gke and --karpenter do."
        ),
    ] = None,
    out: Annotated[str, typer.Option(help="Write the report as JSON to this file too.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The report as JSON.")] = False,
) -> None:
    """Try on your own sandbox what Pilotlight promises: one node is bought, doubled, refused and given back.

    Where nodes of the pool can stand by, one more is stopped, started and given back. A pool of a type that your
    account has no quota for, as P5 in a new account, is bought from in vain with --quota-pool.

    Every node that it buys it releases, however it ends. It ends with 1 where a promise was not kept.

    Example: [bold]pilotlight conformance --cloud aws --pool a10g --max-usd 2 --dry-run[/bold]
    """
    from pilotlight.wiring import App

    see_writable(out)
    name, site = _one_cloud(cloud, karpenter), App(deployed_settings())
    offering = _offering(site, name, pool)
    # What ought to be refused costs as much where it is granted after all.
    most = _most(site, offering) + (_most(site, _offering(site, name, quota_pool)) if quota_pool else 0)
    _see_that_it_is_worth_it(pool, quota_pool, most, Decimal(str(max_usd)))
    if dry_run or (dry_run is None and name in SAYS_FIRST):
        also = f", ask for 1 of {quota_pool} that must be refused" if quota_pool else ""
        typer.echo(f"would buy 1 node of {pool} ({offering.name}) and give it back{also}: {cents(most)} at most")
        return
    for each in filter(None, (pool, quota_pool)):
        _see_that_it_may(site, each)
    from pilotlight.tools.conformance.conformance_run import Run

    tried = Run(site, pool, environment(), quota_pool).go()
    _tell(_report(tried, name, offering), out, as_json=as_json)
    if not tried.kept:
        raise Failed("a promise was not kept; the report says which")


def _one_cloud(cloud: str | None, karpenter: bool) -> str:
    if karpenter == (cloud is not None):
        raise BadInput("conformance tries one cloud: name --cloud aws, civo or gke, or say --karpenter")
    return cloud or "karpenter"


def _see_that_it_is_worth_it(pool: str, quota_pool: str, most: Usd, max_usd: Decimal) -> None:
    if quota_pool == pool:
        raise BadInput(f"--quota-pool and --pool are both {pool}: what is bought and what is refused need a pool each")
    if most > max_usd:
        raise BadInput(f"one node of {pool} may cost {cents(most)}, over --max-usd {max_usd:g}")


def _tell(report: dict[str, Any], out: str, *, as_json: bool) -> None:
    text = msgspec.json.format(msgspec.json.encode(report)).decode()
    typer.echo(text) if as_json else _show(report)
    if out:
        _write(out, text)


def _write(out: str, text: str) -> None:
    try:
        Path(out).write_text(text + "\n")
    except OSError as error:
        typer.echo(text)
        raise Failed(f"{out}: {error.strerror}; the report is printed above instead") from None


def _offering(site: "App", cloud: str, pool: str) -> "Offering":
    if site.settings.clusters:
        raise BadInput(f"there are many clusters: set PILOTLIGHT_CLUSTER to one of {', '.join(site.clusters)}")
    if site.settings.pools.partition(":")[0] != CLOUDS[cloud]:
        said = "--karpenter" if cloud == "karpenter" else f"--cloud {cloud}"
        raise BadInput(f"PILOTLIGHT_POOLS is {site.settings.pools!r}, and {said}: name the cloud in both")
    if pool not in site.policy.pools:
        named = site.settings.policy or "the built-in policy, as neither --policy nor PILOTLIGHT_POLICY names one,"
        raise BadInput(f"{named} has no pool {pool!r}; it has {', '.join(site.policy.pools) or 'none'}")
    found = next((offering for offering in site.deps.offerings if offering.pool == pool), None)
    if found is None:
        raise BadInput(f"no price of pools.{pool} is known: nothing is bought without one")
    return found


def _most(site: "App", offering: "Offering") -> Usd:
    """Where its nodes may stand by it is lit once more for that."""
    from pilotlight.decide.money.economics import billed_cost
    from pilotlight.decide.nodes.spares.standby import stands_by

    again = stands_by(offering, site.policy.pools[offering.pool])
    return billed_cost(offering, 2 * MOST_S if again else MOST_S)


def _see_that_it_may(site: "App", pool: str) -> None:
    """Only a pool that acts, and where nothing waits or works: a job may not land on a node that is given back."""
    mode = site.deps.mode_of(pool)
    if mode != "act":
        raise BadInput(f"the mode of {pool} is {mode}: set pools.{pool}.mode to act")
    from pilotlight.flow.records import brake_records

    if why := brake_records.pause_reason(site.deps.state, site.settings.cluster_name, pool):
        raise BadInput(f"{why}: run pilotlight resume first")
    view = site.deps.cluster.observe()
    if view.pending:
        raise BadInput(
            f"the cluster has {count_of(len(view.pending), 'waiting GPU pod')}: use a sandbox, where none waits"
        )
    working = [node.name for node in view.nodes if node.pool == pool and node.gpu_pods]
    if working:
        raise BadInput(f"node {working[0]} of {pool} works: use a pool without work on it")


def _report(tried: "Tried", cloud: str, offering: "Offering") -> dict[str, Any]:
    """The run with what it cost. ``sha256`` is of the report without it, as JSON with sorted keys and no spaces."""
    from pilotlight.decide.money.economics import billed_cost

    cost = billed_cost(offering, tried.lit_s) if tried.bought else Decimal(0)
    body = {"cloud": cloud, "offering": offering.name, "usd": f"{cost:.6f}", "kept": tried.kept}
    report = {**body, **msgspec.to_builtins(tried)}
    digest = hashlib.sha256(msgspec.json.encode(report, order="sorted")).hexdigest()
    return {**report, "sha256": digest}


def _show(report: dict[str, Any]) -> None:
    for result in report["results"]:
        mark = "kept" if result["kept"] else "NOT KEPT"
        typer.echo(f"{mark:9}{result['promise']}: {result['what']} ({result['seconds']:.1f} s)")
    bought = ", ".join(report["bought"]) or "nothing"
    typer.echo(
        f"bought {bought}, about {cents(Decimal(report['usd']))} of {report['offering']}; sha256 {report['sha256']}"
    )

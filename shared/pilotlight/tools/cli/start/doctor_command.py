"""``pilotlight doctor``: what is wrong between a policy, a cluster and this account, one line each with its fix."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import BadInput, Denied, PilotlightError, Retry
from pilotlight.facts.capacity import Offering
from pilotlight.facts.limits.checks import Check
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.tools.checkup.rights import (
    CLAIMS,
    EVIDENCE,
    GATES,
    HEARTBEAT,
    LOOK,
    PULLS,
    QUEUES,
    SURVEY,
    TAKE,
    TELL,
    TOO_MUCH,
)
from pilotlight.tools.checkup.survey_facts import SeenMark, Survey
from pilotlight.tools.cli.real_cluster import Context, Kubeconfig, settings_for
from pilotlight.tools.cli.served import header
from pilotlight.tools.cli.terminal import console_of

if TYPE_CHECKING:
    from pilotlight.tools.install.handover import GroupState
    from pilotlight.wiring import App


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    policy: Annotated[str, typer.Option(help="Policy file; left out: PILOTLIGHT_POLICY, or the built-in one.")] = "",
    ready: Annotated[
        bool,
        typer.Option(
            "--readiness", help="The checklist of a cluster that is ready for GPUs too; none of it is a fault."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The checks as JSON.")] = False,
) -> None:
    """Say what is wrong on a cluster: rights, pools, labels, device plugin, other autoscalers, prices. Changes nothing.

    It ends with 1 where something is at fault. Example: [bold]pilotlight doctor --context prod --readiness[/bold]
    """
    from pilotlight.flow.abreast import abreast
    from pilotlight.wiring import App

    settings = settings_for(context, kubeconfig, policy=policy)
    if not (settings.api or settings.clusters):
        raise BadInput(
            f"{header(settings, settings.state)}: a pretend world has nothing to check; name a cluster by --context"
        )
    app = App(settings)
    sites = {name: app.for_cluster(name) for name in app.clusters}
    found = abreast({name: partial(examine, site, ready=ready) for name, site in sites.items()}, app.settings.wait_s)
    checks: dict[str, Sequence[Check]] = {}
    for name, each in found.items():
        if isinstance(each, Exception) and not isinstance(each, Retry | Denied):
            raise each
        checks[name] = [_unreached(name, each)] if isinstance(each, Exception) else each
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(checks)).decode())
    else:
        _print_text(header(settings, settings.state, here=bool(context or kubeconfig)), checks)
    if any(check.verdict == "fault" for each in checks.values() for check in each):
        raise typer.Exit(1)


def examine(site: "App", *, ready: bool = False) -> Sequence[Check]:
    """All checks of one cluster. Raises what reaching it raises."""
    from pilotlight.decide.offers.offerings import stale_prices
    from pilotlight.tools.checkup.deployment import checkup

    now = datetime.now(UTC)
    offered, unbuyable = site.price_offerings()
    prices = (*unbuyable, *stale_prices(site.policy, offered, now))
    seen = look(site, now)
    clouds, told = at_the_cloud(site, offered)
    mode = site.settings.mode
    groups, unread = group_settings(site) if clouds is not None else ({}, ())
    found = checkup(seen, site.policy, offered, mode=mode, clouds=clouds, prices=prices, groups=groups)
    return (*found, *closed_nodes(site, seen), *told, *unread, *(_readiness(seen, site) if ready else ()))


def _readiness(seen: Survey, site: "App") -> Sequence[Check]:
    from pilotlight.tools.checkup.readiness import readiness

    return tuple(readiness(seen, site.policy))


def closed_nodes(site: "App", seen: Survey) -> Sequence[Check]:
    """The nodes that carry our taint, with its owners by the state's records; the state is opened only for them."""
    from pilotlight.state_schema.cluster_records import NODE_MARK
    from pilotlight.tools.checkup.node_taints import mark_checks, marked_nodes

    if not marked_nodes(seen):
        return ()
    try:
        entries = list(NODE_MARK.scan(site.state, f"{site.settings.cluster_name}/"))
    except PilotlightError as error:
        return [Check(code="mark", subject="our taints", verdict="unknown", what=str(error), fix=_STATE)]
    marks = [
        SeenMark(node=entry.value.node, owner=owner, why=claim.why, since=claim.since, until=claim.until)
        for entry in entries
        for owner, claim in entry.value.owners.items()
    ]
    return tuple(mark_checks(seen, marks))


def at_the_cloud(site: "App", offered: Sequence[Offering]) -> tuple[dict[str, PoolState] | None, Sequence[Check]]:
    """The pools as their cloud tells them, None where none is asked; and what its account may rent of them."""
    pools = site.settings.pools
    if not pools or pools == "advisor" or (pools == "karpenter" and not _claims(site)):
        return None, ()
    try:
        clouds = {state.name: state for state in site.deps.pools.describe()}
    except PilotlightError as error:
        return None, [Check(code="cloud", subject=site.settings.pools, verdict="fault", what=str(error), fix=_CLOUD)]
    return clouds, (*_shop(site, offered, clouds), *_rights_at_the_cloud(site))


def _claims(site: "App") -> bool:
    """True where pools are bought for by Karpenter's claims."""
    return site.settings.pools == "karpenter" and any(not pool.nodepool for pool in site.policy.pools.values())


def group_settings(site: "App") -> "tuple[Mapping[str, GroupState], Sequence[Check]]":
    """Settings of the pools' groups, where their cloud can be asked for them; and why not."""
    from pilotlight.tools.install.cloud_handovers import handover_at

    settings = site.settings
    names = {name: pool.cluster_pool or name for name, pool in site.policy.pools.items() if not pool.nodepool}
    handover = handover_at(settings.pools, names, settings.environ, settings.role_arn)
    try:
        return (handover.read() if handover is not None else {}), ()
    except PilotlightError as no:
        why = f"who else keeps the groups is not known: {no}"
        return {}, [Check(code="pool-hands", subject=settings.pools, verdict="unknown", what=why, fix=_HANDS)]


def _shop(site: "App", offered: Sequence[Offering], clouds: dict[str, PoolState]) -> Sequence[Check]:
    from pilotlight.connections import shop_at
    from pilotlight.tools.checkup.cloud_quota import shop_checks

    shop = shop_at(site.settings)
    if shop is None:
        return ()
    try:
        names = sorted({pool.instance_type for pool in site.policy.pools.values()})
        return tuple(shop_checks(site.policy, offered, shop.assortment(names), clouds))
    except PilotlightError as error:
        return [Check(code="size", subject=site.settings.pools, verdict="unknown", what=str(error), fix=_CLOUD)]


def _rights_at_the_cloud(site: "App") -> Sequence[Check]:
    kind, _, where = site.settings.pools.partition(":")
    settings = site.settings
    if kind == "asg":
        from pilotlight.connections import account_at
        from pilotlight.tools.checkup.clouds.aws_rights import aws_rights

        return tuple(aws_rights(where, site.policy, account_at(settings, site.policy)))
    if kind == "gke":
        from pilotlight.tools.checkup.clouds.gke_rights import gke_rights
        from pilotlight.tools.checkup.deployment import strongest

        acts = strongest(site.policy, settings.mode) in ("scale-up", "act")
        return tuple(gke_rights(where, settings.environ, acts=acts))
    return ()


def look(site: "App", now: datetime) -> Survey:
    """The survey of the cluster that the settings name."""
    from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
    from pilotlight.adapters.cluster.kubernetes.transport import Api
    from pilotlight.tools.checkup.account_limits import cloud_pool_names
    from pilotlight.tools.checkup.survey import survey
    from pilotlight.tools.install.prove_limits import eviction_limit_of, limit_of, pod_limit_of

    source = source_of(site.settings.api, site.settings.environ, site.settings.role_arn)
    api = Api(source)
    asked = (
        *LOOK,
        *TELL,
        *TAKE,
        *EVIDENCE,
        *HEARTBEAT,
        *PULLS,
        *SURVEY,
        *QUEUES,
        *TOO_MUCH,
        *(GATES if site.policy.gates else ()),
        *(CLAIMS if _claims(site) else ()),
    )
    seen = survey(source, api, site.policy, asked, now)
    pools = cloud_pool_names(site.policy)
    return msgspec.structs.replace(
        seen,
        limit=limit_of(source, api, pools),
        pod_limit=pod_limit_of(source, api),
        eviction_limit=eviction_limit_of(source, api, pools),
    )


_HANDS = "give yourself the rights of takeover: pilotlight show docs/guides/eks.md"
_STATE = "check the address in PILOTLIGHT_STATE"
_CLOUD = "check the token and the address in PILOTLIGHT_POOLS"


def _unreached(cluster: str, error: Exception) -> Check:
    fix = "check the address, the network and the credential; kubectl get --raw /version tells the same"
    return Check(code="reach", subject=cluster, verdict="fault", what=str(error), fix=fix)


def _print_text(head: str, checks: dict[str, Sequence[Check]]) -> None:
    from pilotlight.tools.checkup.checkup_text import lines

    console = console_of(highlight=False, soft_wrap=True)
    console.print(head, markup=False)
    for cluster, each in checks.items():
        for line in lines(cluster, each):
            console.print(line)

"""``pilotlight takeover`` and ``handback``: who keeps a pool, changed at its cloud, written down, and given back."""

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import BadInput, Denied, Failed, Retry
from pilotlight.settings import Settings
from pilotlight.tools.cli.real_cluster import Context, Kubeconfig, settings_for
from pilotlight.tools.install.hand_over import Book, Cloud, Told, hand_back, take_over
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.adapters.cluster.kubernetes.transport import Api
    from pilotlight.facts.limits.pool_handover import Taken
    from pilotlight.tools.install.handover import Handover
    from pilotlight.wiring import App

Pool = Annotated[list[str] | None, typer.Option("--pool", help="This pool, again for more; left out: all of them.")]
RoleArn = Annotated[
    str | None,
    typer.Option(
        metavar="ARN",
        help="Act at AWS as this role, or by this machine's 'own' credential; left out: as PILOTLIGHT_CLUSTERS says, "
        "or as whoever took the pool over.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be set; change nothing.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON, a row a setting.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(takeover)
    app.command()(handback)


def takeover(
    pool: Pool = None,
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    policy: Annotated[str, typer.Option(help="Policy file; left out: that of the deployment.")] = "",
    role_arn: RoleArn = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Take pools over from another autoscaler, or take back what was handed back: tags, sizes, protection, repair.

    Each change is written down first, in the cluster and in the state. No node is touched. It needs rights at the
    cloud that Pilotlight itself has not: pilotlight show docs/guides/eks.md (or gke.md) lists them. A NodePool of
    Karpenter's, by its own name, loses the mark that handback left on it.

    Example: [bold]pilotlight takeover --pool a10g --dry-run[/bold]
    """
    from pilotlight.wiring import App

    app = App(settings_for(context, kubeconfig, policy=policy))
    _say(
        [line for name in app.clusters for line in _taken_over(app.for_cluster(name), pool or [], role_arn, dry_run)],
        as_json,
        dry_run,
    )


def _taken_over(site: "App", named: list[str], role_arn: str | None, dry: bool) -> Iterator[Told]:
    names = {n: p.cluster_pool or n for n, p in site.policy.pools.items() if not p.nodepool}
    gates = set(site.policy.gates.values())
    for name in named:
        _see_that_it_may_be_taken(name, names, site.policy.gates)
    yield from _nodepools_taken_over(site, names, gates.intersection(named or gates), named, dry)
    groups = [name for name in named if name in names]
    if site.settings.pools != "karpenter" and (groups or not named):
        yield from _groups_taken_over(site, names, groups, role_arn, dry, not named and bool(gates))


def _see_that_it_may_be_taken(name: str, names: Mapping[str, str], gates: Mapping[str, str]) -> None:
    if name in gates and name not in gates.values():
        raise BadInput(f"pool {name} is Karpenter's: say --pool {gates[name]}, its NodePool")
    if name not in names and name not in gates.values():
        known = ", ".join((*names, *sorted(set(gates.values())))) or "none"
        raise BadInput(f"no pool {name!r} in the policy: it has {known}")


def _nodepools_taken_over(
    site: "App", names: dict[str, str], gates: set[str], named: list[str], dry: bool
) -> Iterator[Told]:
    """NodePools of Karpenter's: those whose limits are kept, and those that are bought by."""
    from pilotlight.tools.install.karpenter.nodepool_handback import take_again

    if gates:
        told = list(take_again(_api(site.settings), gates, dry_run=dry))
        yield from told
        for name in sorted(gates - {line.pool.removeprefix("NodePool ") for line in told}):
            yield Told(pool=f"NodePool {name}", verb="nothing to do", why="is Pilotlight's already")
    if site.settings.pools == "karpenter":
        yield from _claims_taken_over(site, {names[n] for n in named or names if n in names}, dry)


def _claims_taken_over(site: "App", called: set[str], dry: bool) -> Iterator[Told]:
    """NodePools that we buy by, by Karpenter's names: their claims first, so that nobody else is asked in between."""
    from pilotlight.tools.install.karpenter.claims_handback import take_claims
    from pilotlight.tools.install.karpenter.nodepool_handback import take_again

    api = _api(site.settings)
    yield from take_claims(api, called, dry_run=dry)
    if called:
        yield from take_again(api, called, dry_run=dry)


def _groups_taken_over(
    site: "App", names: dict[str, str], named: list[str], role_arn: str | None, dry: bool, may_lack: bool
) -> Iterator[Told]:
    """Groups at a cloud; with ``may_lack`` there need be none."""
    from pilotlight.decide.nodes.spares.standby import stands_by
    from pilotlight.tools.install.cloud_handovers import handover_at

    settings = site.settings
    role = own_role(role_arn, settings.role_arn)
    handover = handover_at(settings.pools, names, settings.environ, role)
    if handover is None and may_lack:
        return
    if handover is None:
        raise BadInput(
            f"PILOTLIGHT_POOLS is {settings.pools!r}: only pools of asg:REGION/EKS_CLUSTER and "
            "gke:PROJECT/LOCATION/CLUSTER are another's to take over"
        )
    cloud = Cloud(settings.pools, role, handover)
    book = Book(_api(settings), settings.cluster_name, site.state)
    groups = handover.read()
    stands = {o.pool for o in site.deps.offerings if stands_by(o, site.policy.pools[o.pool])}
    for name in named or [name for name in names if name in groups]:
        if name not in groups:
            raise BadInput(
                f"pool {name} has no group at {settings.pools}; create it, or mend pools.{name}.cluster_pool"
            )
        rule, now = site.policy.pools[name], datetime.now(UTC)
        yield from take_over(name, rule, cloud, groups[name], book, now, dry, name in stands)


def handback(
    pool: Pool = None,
    if_silent: Annotated[
        str,
        typer.Option(help="Only where nothing was heard of Pilotlight for so long, as 10m; and as on_silence says."),
    ] = "",
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    role_arn: RoleArn = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Give pools back to whoever kept them before takeover: what was changed then is set as it was. No job is touched.

    It needs the cluster and the cloud, and nothing of ours: no state, no function, no policy. Nodes of theirs that we
    keep are opened. Karpenter's NodePools keep their limits of before ours until takeover, and NodeClaims of ours
    become theirs. A watchman (pilotlight show infra/kubernetes/handback/watchman.yaml) runs it with --if-silent, and
    leaves nodes to the other one. The way back: pilotlight takeover.

    Example: [bold]pilotlight handback --pool a10g --dry-run[/bold]
    """
    api, now = _api(settings_for(context, kubeconfig)), datetime.now(UTC)
    found, unread = Book(api).read()
    for problem in unread:
        typer.echo(problem, err=True)
    gates, claimed = ([], []) if if_silent else _nodepools(api, pool, found)
    if wrong := [name for name in pool or [] if name not in (*found, *gates, *claimed)]:
        had = f"taken over are {', '.join(sorted(found))}" if found else "no pool was"
        raise BadInput(
            f"pool {wrong[0]} was never taken over: there is nothing to give back; {had}, and Karpenter's pools go by "
            "the names of their NodePools"
        )
    chosen = [taken for name, taken in sorted(found.items()) if not pool or name in pool]
    told: list[Told] = []
    failed = len(unread)
    for taken in _due(api, chosen, if_silent, now):
        try:
            for line in _given(api, taken, now, role_arn, dry_run):
                told.append(line)
        except (Denied, Retry) as error:  # The others are given back all the same.
            failed += 1
            typer.echo(f"{taken.pool}: {error}", err=True)
    if not if_silent:
        told += (*_claims_given(api, claimed, now, dry_run), *_opened(api, chosen, claimed, dry_run))
        told += _ungated(api, gates, now, dry_run)
    _say(told, as_json, dry_run)
    if failed:
        raise Failed(f"not given back whole: {count_of(failed, 'pool')}; run it again, it goes on where it stopped")


def _given(api: "Api", taken: "Taken", now: datetime, role_arn: str | None, dry: bool) -> Iterator[Told]:
    from pilotlight.tools.install import takeover_records

    told: list[Told] = []
    for line in hand_back(taken, partial(cloud_of, role_arn), Book(api), now, dry):
        told.append(line)
        yield line
    if any(line.verb == "set" for line in told):
        takeover_records.tell(api, f"{taken.pool} was handed back: {'; '.join(line.line for line in told)}", now)


def _gates(api: "Api", named: list[str] | None) -> list[str]:
    """NodePools of Karpenter's with a limit of ours, those that are named or all."""
    from pilotlight.tools.install.karpenter.nodepool_handback import our_limits

    return [name for name in our_limits(api) if not named or name in named]


def _nodepools(api: "Api", named: list[str] | None, others: Container[str]) -> tuple[list[str], list[str]]:
    """NodePools with a limit of ours, and those that we bought by; of those that are named or all."""
    from pilotlight.tools.install.karpenter.claims_handback import may_be_given

    gates = _gates(api, named)
    left = [name for name in named or () if name not in others and name not in gates]
    return gates, may_be_given(api, left) if left or not named else []


def _claims_given(api: "Api", claimed: list[str], now: datetime, dry: bool) -> "Iterator[Told]":
    from pilotlight.tools.install.karpenter.claims_handback import give_claims

    if claimed:
        yield from give_claims(api, claimed, now, dry_run=dry)


def _ungated(api: "Api", gates: list[str], now: datetime, dry: bool) -> "Iterator[Told]":
    """Their limits from before ours, and a mark by which they stay so."""
    from pilotlight.tools.install.karpenter.nodepool_handback import give_back

    if gates:
        yield from give_back(api, gates, now, dry_run=dry)


def _opened(api: "Api", chosen: "Iterable[Taken]", claimed: list[str], dry: bool) -> Iterator[Told]:
    """Our taints off the nodes of these pools, by a credential that may."""
    from pilotlight.errors import Forbidden
    from pilotlight.tools.install.remove_account import reopen

    names = {name: taken.pool for taken in chosen for name in (taken.pool, taken.group)} | {n: n for n in claimed}
    try:
        for step in reopen(api, dry_run=dry, pools=names):
            setting = f"{step.kind.lower()} {step.name}"
            if step.verb == "keep":
                yield Told(pool=names[step.name], verb="kept", why=step.why)
            else:
                why = step.why.removeprefix("it had the taint ")
                yield Told(pool=setting, verb="would set" if dry else "set", setting="our taints", was=why)
    except Forbidden as no:
        typer.echo(f"nodes stay as they are: {no}", err=True)


def own_role(named: str | None, known: str) -> str:
    """Whom to act as: what is named, where "own" is this process's own credential; else what is known."""
    return known if named is None else "" if named == "own" else named


def cloud_of(role_arn: str | None, taken: "Taken") -> "Handover | None":
    """The cloud that a record names, as the environment lets in, or as the role that is named or took it over."""
    from pilotlight.settings import environment
    from pilotlight.tools.install.cloud_handovers import handover_at

    return handover_at(taken.pools, {taken.pool: taken.group}, environment(), own_role(role_arn, taken.role))


def _due(api: "Api", taken: "Iterable[Taken]", if_silent: str, now: datetime) -> "Iterator[Taken]":
    """Those to give back: all, or those that silence gives back."""
    if not if_silent:
        yield from taken
        return
    from pilotlight.adapters.cluster.kubernetes.transport import Missing
    from pilotlight.codec.policy_values import parse_duration
    from pilotlight.tools.install.handover_steps import falls_back
    from pilotlight.tools.install.watchman import last_renewal

    try:
        after_s = parse_duration(if_silent)
    except ValueError as error:
        raise BadInput(f"--if-silent {if_silent!r} {error}") from None
    try:
        renewed = last_renewal(api)
    except Missing as error:
        raise BadInput(
            f"{error}; without the Lease nobody knows of silence: pilotlight show "
            "infra/kubernetes/handback/watchman.yaml | kubectl apply -f -"
        ) from None
    yield from (each for each in taken if falls_back(each, renewed, now, after_s))


def _api(settings: Settings) -> "Api":
    from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
    from pilotlight.adapters.cluster.kubernetes.transport import Api

    return Api(source_of(settings.api, settings.environ, settings.role_arn))


def _say(told: list[Told], as_json: bool, dry: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode({"dry_run": dry, "pools": told}).decode())
        return
    for line in told:
        typer.echo(line.line)
    typer.echo("nothing was changed" if dry or not any(line.verb == "set" for line in told) else "done")

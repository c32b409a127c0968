"""``pilotlight plan``: a dry run on a real cluster, or on its objects in files, through the flow of a deployment."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.decide.interruption.give_way import GiveWay, count_unweighed, give_way
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.decisions import Plan
from pilotlight.settings import Settings, default_file, deployed_settings, read
from pilotlight.tools.cli.real_cluster import Kubeconfig, current_context, settings_for
from pilotlight.tools.cli.served import header
from pilotlight.tools.cli.terminal import console_of
from pilotlight.tools.cli.value_of_wait import ValueOfWait, with_value_of_wait

if TYPE_CHECKING:
    from pilotlight.facts.decisions import NodeVerdict
    from pilotlight.facts.policy import Policy
    from pilotlight.flow.deps import Deps
    from pilotlight.flow.observe.snapshot import Snapshot
    from pilotlight.ports.seams import Seams
    from pilotlight.tools.checkup.pool_homes import PoolHome
    from pilotlight.tools.cli.cluster_files import File
    from pilotlight.tools.report.texts.plan_text import Source
    from pilotlight.wiring import App


EXIT_WOULD_CHANGE = 3
PRINTED = 100
"""So many lines are printed at once: a plan has one or more for each pod."""
SHOWN = 40
"""Characters of JSON that an error shows of it."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plan)


@contextmanager
def _uncollected() -> Iterator[None]:
    """While nothing that is made is garbage: looking for some takes a fifth of a plan of 10,000 pods."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def plan(
    subject: Annotated[str, typer.Argument(help="Only this pod (by name or uid) or node.", metavar="POD")] = "",
    pods: Annotated[str, typer.Option(help="Output of `kubectl get pods -A -o json`; - for stdin.")] = "",
    nodes: Annotated[str, typer.Option(help="Output of `kubectl get nodes -o json`; - for stdin.")] = "",
    objects: Annotated[
        list[str] | None,
        typer.Option(help="Lists of pvc, pv, storageclass, pdb, podgroups or namespaces. May be given many times."),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="The sample cluster that comes along, to try it.")] = False,
    context: Annotated[str, typer.Option(help="Instead of files: look at the cluster of this context.")] = "",
    kubeconfig: Kubeconfig = "",
    policy: Annotated[str, typer.Option(help="Policy file; left out: PILOTLIGHT_POLICY, or the built-in one.")] = "",
    catalog: Annotated[str, typer.Option(help="Catalogue of types and prices; left out: the built-in one.")] = "",
    value_of_wait: ValueOfWait = None,
    at: Annotated[str, typer.Option(help="Plan as of this time, as 2026-11-21T00:30:00Z; left out: now.")] = "",
    options: Annotated[bool, typer.Option("--why", help="The options of each pod, or of POD, and why not.")] = False,
    offerings: Annotated[bool, typer.Option("--offerings", help="A table of every offering: price, fit, why.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All of the plan, as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="For the comment of a pull request.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 3 where something would change.")] = False,
) -> None:
    """Say what would be bought, kept and released on your cluster, and why. Changes nothing.

    From files, or from a cluster itself. Examples: [bold]pilotlight plan --context prod --why nlp/train-0[/bold];
    [bold]kubectl get nodes -o json | pilotlight plan --pods pods.json --nodes -[/bold]
    """
    if as_json and as_markdown:
        raise BadInput("--json and --markdown are two ways to have it: choose one")
    if sample:
        pods, nodes, at = _sample(pods or nodes or context or kubeconfig, at)
    app, seams, now = source_of(pods, nodes, objects or [], context, kubeconfig, policy, catalog, at)
    rules = with_value_of_wait(app.policy, value_of_wait)
    dry = dry_run(app, seams, now, rules)
    snapshot, decided = decide(dry)
    ways = give_way(decided, snapshot.view, snapshot.memory, rules, now)
    homes = _homes(dry, snapshot)
    source = plan_source(app, REMEMBERS_NOTHING, of_files(pods, nodes, sample), named=bool(context or kubeconfig))
    if as_json:
        _print_json(decided, now, ways, homes)
    elif as_markdown:
        _print_markdown(decided, now, source, _prices(dry) if offerings else None)
    elif subject:
        _print_about(decided, subject, now, source)
    else:
        _print_text(decided, now, source, options, ways)
        _print_homes(homes)
    if offerings and not (as_json or as_markdown):
        _print_offerings(decided, _prices(dry))
    if exit_code and not (decided.empty and not decided.held):
        raise typer.Exit(EXIT_WOULD_CHANGE)


SAMPLE_AT = "2026-11-21T00:30:00Z"
"""When the sample cluster was as its files have it: later its nodes would have stood idle for weeks."""
REMEMBERS_NOTHING = "none, a dry run remembers nothing"
"""Stands for the address of a state where none is read."""


def of_files(pods: str, nodes: str, sample: bool = False) -> str:
    """The cluster of two files, or of the sample's; empty where none are named."""
    return "the sample cluster" if sample else f"cluster in {pods} and {nodes}" if pods else ""


def plan_source(app: "App", state: str, files: str = "", *, named: bool = False) -> "Source":
    """The cluster, the state, the policy and the prices that a plan is of; ``named``: no serve's, by a context."""
    from pilotlight.tools.report.texts.plan_text import Source

    if state == REMEMBERS_NOTHING and not files:
        state += ": pilotlight status goes by pauses, holds and dollars spent"
    of = f"{files}; state {state}" if files else header(app.settings, state, here=named)
    policy = f"policy {app.settings.policy}" if app.settings.policy else "the built-in policy"
    return Source(of, f"with {policy}, catalogue {app.catalog.name}")


def _sample(other: str, at: str) -> tuple[str, str, str]:
    """The files of the sample cluster, and when to plan. Raises ``BadInput`` where another is named beside it."""
    if other:
        raise BadInput("--sample is a cluster of its own: name no other")
    pods, nodes = (str(default_file(f"examples/cluster/{name}.json")) for name in ("pods", "nodes"))
    return pods, nodes, at or SAMPLE_AT


def source_of(
    pods: str, nodes: str, objects: Sequence[str], context: str, kubeconfig: str, policy: str, catalog: str, at: str
) -> "tuple[App, Seams, datetime]":
    """The app, what of it files stand for (nothing where a cluster is looked at itself), and the moment."""
    from pilotlight.wiring import App

    files = pods or nodes or objects
    settings = deployed_settings()
    if not (context or kubeconfig or files) and len(settings.clusters) > 1:
        raise BadInput(f"PILOTLIGHT_CLUSTERS has {', '.join(settings.clusters)}: name one by --context")
    if context or kubeconfig or (not files and (settings.api or settings.clusters or settings.world)):
        if files:
            raise BadInput("--context looks at a cluster, --pods and --nodes at files: name one of them")
        app = App(settings_for(context, kubeconfig, policy=policy, catalog=catalog))
        app = app.for_cluster(app.clusters[0])
        return app, {}, _moment(at) if at else app.clock.now()
    app = App(_settings(policy, catalog))
    return app, *_from_files(app, pods, nodes, objects, at)


def _prices(dry: "App") -> dict[str, Decimal]:
    """Dollars an hour of every offering, by its name."""
    return {offering.name: offering.usd_per_hour for offering in dry.price_offerings()[0]}


def _settings(policy: str, catalog: str) -> Settings:
    settings = deployed_settings()
    return msgspec.structs.replace(settings, policy=policy or settings.policy, catalog=catalog or settings.catalog)


def _from_files(app: "App", pods: str, nodes: str, objects: Sequence[str], at: str) -> "tuple[Seams, datetime]":
    """The cluster that files show, and the moment to plan for."""
    from pilotlight.tools.cli.cluster_files import FileCluster, FilePools

    if not (pods and nodes):
        context = "" if pods or nodes or objects else current_context(app.settings)
        raise BadInput(
            f"name two files by --pods and --nodes, or a cluster by --context{f' {context}' if context else ''}; "
            "pilotlight plan --sample tries one that comes along"
        )
    files = read_files([pods, nodes, *objects])
    cluster = FileCluster(files[0], files[1], files[2:], app.policy)
    now = _moment(at) if at else max(filter(None, (datetime.now(UTC), cluster.taken_at())))
    return {"cluster": cluster, "pools": FilePools(cluster)}, now


def dry_run(app: "App", seams: "Seams", now: datetime, policy: "Policy") -> "App":
    """The app at a moment, with nothing remembered and nobody told."""
    from pilotlight.adapters.outbox.local import MemoryOutbox
    from pilotlight.adapters.state.memory import MemoryState
    from pilotlight.wiring import App
    from pilotlight.world.world_clock import VirtualClock

    clock = VirtualClock(now)
    given: Seams = {
        **seams,
        "policy": policy,
        "catalog": app.catalog,
        "clock": clock,
        "state": MemoryState(clock),
        "outbox": MemoryOutbox(),
    }
    return App(app.settings, **given)


@_uncollected()
def decide(dry: "App") -> "tuple[Snapshot, Plan]":
    """The look and the plan of a reconcile, and what is wrong with pools and prices."""
    from pilotlight.flow.cycle.planning import preview
    from pilotlight.tools.glance.new_nodes import booting

    snapshot, decided = preview(_as_if_it_may_act(dry.deps), releases=True)
    priced, unbuyable = dry.price_offerings()
    boots = booting(decided, snapshot.pools, {each.pool: each.usd_per_hour for each in priced})
    words = (msgspec.structs.replace(each, why=f"boots: {each.why}") for each in boots)
    nodes = (*_with_off_hours(decided, snapshot, dry.policy), *words)
    return snapshot, msgspec.structs.replace(decided, nodes=nodes, findings=(*decided.findings, *unbuyable))


def _with_off_hours(decided: Plan, snapshot: "Snapshot", policy: "Policy") -> "tuple[NodeVerdict, ...]":
    """The verdicts, in which a node that off-hours empty says so: a drain does that, and no plan."""
    if not any(rule.does.evict for rule in policy.rules):
        return decided.nodes
    from pilotlight.decide.limits.policy_schedule import emptied_by, in_window, leave_off_hours

    leave, words = leave_off_hours(policy, snapshot.now), dict[str, str]()
    for node in snapshot.view.nodes:
        ours = node.pool in policy.pools and policy.pools[node.pool].handled_by == "pilotlight"
        for rule in emptied_by(node, leave) if ours and not snapshot.stays(node.pool, node.instance) else ():
            time = rule.when.time
            now = time is None or in_window(time, snapshot.now)
            when = "now" if time is None or now else f"at {time.start} {time.timezone}"
            words[node.name] = f"{words.get(node.name, '')}; rule {rule.name} evicts its pods {when}, and releases it"
    return tuple(
        msgspec.structs.replace(node, why=node.why + words.get(node.node, "")) if node.verdict == "keep" else node
        for node in decided.nodes
    )


def _as_if_it_may_act(deps: "Deps") -> "Deps":
    """A plan says what would be done, whatever the modes allow."""
    pools = {name: msgspec.structs.replace(pool, mode=None) for name, pool in deps.policy.pools.items()}
    return replace(deps, mode="act", policy=msgspec.structs.replace(deps.policy, pools=pools))


def read_files(names: Sequence[str]) -> "list[File]":
    """The files' bytes; ``-`` once is stdin."""
    from pilotlight.tools.cli.cluster_files import File, as_list

    if names.count("-") > 1:
        raise BadInput("-: stdin can be read only once; write one of the lists to a file")
    return [
        File(as_list(sys.stdin.buffer.read()), "stdin") if name == "-" else File(as_list(_read(name)), name)
        for name in names
    ]


def _read(name: str) -> bytes:
    """The bytes of a file. Raises ``BadInput`` that says so where the text of one stands for its name."""
    try:
        return read(name)
    except BadInput:
        if name.lstrip()[:1] not in ("{", "["):
            raise
    raise BadInput(
        f"{' '.join(name[:SHOWN].split())}... is JSON itself: save it to a file and name that, or pipe it to --pods -"
    )


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"--at is {text!r}: write a time as 2026-11-21T00:30:00Z") from None
    if not 1970 < moment.year < 2200:
        raise BadInput(f"--at is {text!r}: name a year between 1970 and 2200")
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


@_uncollected()
def _homes(dry: "App", snapshot: "Snapshot") -> "Sequence[PoolHome]":
    """Which pools are homed and why, as if they may act."""
    from pilotlight.facts.limits.brakes import Brakes
    from pilotlight.tools.checkup.pool_homes import pool_homes

    deps = _as_if_it_may_act(dry.deps)
    brakes = Brakes(paused=snapshot.others)
    return pool_homes(snapshot.view, deps.policy, deps.offerings, deps.throughput, brakes, snapshot.now)


def _print_homes(homes: "Sequence[PoolHome]") -> None:
    from pilotlight.tools.cli.printing import say
    from pilotlight.tools.report.texts.pool_homes_text import section

    say(section(homes) if homes else ())


def _print_json(decided: Plan, now: datetime, ways: Sequence[GiveWay], homes: "Sequence[PoolHome]") -> None:
    from pilotlight.tools.cli.printing import json_text

    more = {"unpriced": len(decided.unpriced), "give_way": ways, "pool_homes": homes}
    typer.echo(json_text({"at": now, **msgspec.structs.asdict(decided), **more}, "number"))


@_uncollected()
def _print_text(decided: Plan, now: datetime, source: "Source", options: bool, ways: Sequence[GiveWay]) -> None:
    from pilotlight.tools.cli.printing import fit_text, say
    from pilotlight.tools.report.texts.plan_text import lines

    console = console_of(highlight=False, soft_wrap=True)
    said = lines(decided, now, source, options)
    while some := list(islice(said, PRINTED)):
        if console.is_terminal or console.color_system:
            console.print(*(part for line in some for part in fit_text(line, console)), sep="\n")
        else:
            typer.echo("\n".join(line.plain for line in some))
    if ways:
        from pilotlight.tools.report.texts.give_way_text import section

        say(section(ways, more=count_unweighed(decided)))


def _print_markdown(decided: Plan, now: datetime, source: "Source", prices: dict[str, Decimal] | None) -> None:
    from pilotlight.tools.report.tables.offers_table import markdown

    typer.echo("\n".join(markdown(decided, prices, now, source)))


def _print_about(decided: Plan, subject: str, now: datetime, source: "Source") -> None:
    """One pod or node, with the options that it had."""
    from pilotlight.tools.cli.printing import fit_text
    from pilotlight.tools.report.texts.plan_text import lines_about

    said = [*lines_about(decided, subject, now, source)]
    if not said:
        raise Failed(f"no GPU pod {subject!r} waits and no GPU node has that name; pilotlight plan lists them")
    console = console_of(highlight=False, soft_wrap=True)
    for line in said:
        console.print(*fit_text(line, console), sep="\n")


def _print_offerings(decided: Plan, prices: dict[str, Decimal]) -> None:
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.offers_table import table

    typer.echo("\nOfferings")
    console().print(table(decided, prices))

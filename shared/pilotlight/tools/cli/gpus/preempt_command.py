"""``pilotlight preempt``: whether a running pod should give way to one that waits, and whether a tick does it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pilotlight.errors import Failed
from pilotlight.tools.cli.real_cluster import Kubeconfig
from pilotlight.tools.cli.state_option import tell_instead
from pilotlight.tools.cli.value_of_wait import ValueOfWait, with_value_of_wait

if TYPE_CHECKING:
    from pilotlight.facts.decisions import Plan
    from pilotlight.flow.observe.snapshot import Snapshot
    from pilotlight.tools.advice.run_quantiles import RunLengths
    from pilotlight.wiring import App


SHOWN = 5
"""Pods that wait, named where nothing that runs would help them."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(preempt)


def preempt(
    pod: Annotated[str, typer.Argument(help="A pod that waits (namespace/name, name or uid); left out: all.")] = "",
    trace: Annotated[
        Path | None, typer.Option(help="Runs that ended, as `pilotlight trace` writes them: they say who has how long.")
    ] = None,
    pods: Annotated[str, typer.Option(help="Output of `kubectl get pods -A -o json`; - for stdin.")] = "",
    nodes: Annotated[str, typer.Option(help="Output of `kubectl get nodes -o json`; - for stdin.")] = "",
    context: Annotated[str, typer.Option(help="Instead of files: look at the cluster of this context.")] = "",
    kubeconfig: Kubeconfig = "",
    policy: Annotated[str, typer.Option(help="Policy file; left out: PILOTLIGHT_POLICY, or the built-in one.")] = "",
    catalog: Annotated[str, typer.Option(help="Catalogue of types and prices; left out: the built-in one.")] = "",
    value_of_wait: ValueOfWait = None,
    at: Annotated[str, typer.Option(help="As of this time, as 2026-11-21T00:30:00Z; left out: now.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Every pair, as JSON.")] = False,
) -> None:
    """Say which running pod could give way to one that waits for a cap, a budget or capacity.

    Of each: its priority, the time it has probably left, and what waiting and what preempting costs. A cluster is
    looked at with what its deployment remembers, files with nothing
    remembered. A tick acts, where the class of the pod that runs consents (may_move: preempt).

    Example: [bold]pilotlight preempt ml/train-0 --context prod --trace ours.csv.gz[/bold]
    """
    from pilotlight.decide.interruption.give_way import count_unweighed, give_way
    from pilotlight.flow.cycle.planning import preview
    from pilotlight.tools.cli.start.plan_command import (
        REMEMBERS_NOTHING,
        decide,
        dry_run,
        of_files,
        plan_source,
        source_of,
    )
    from pilotlight.tools.report.texts.give_way_text import lines

    app, seams, now = source_of(pods, nodes, (), context, kubeconfig, policy, catalog, at)
    if seams:
        tell_instead("")  # The head says that no state was read.
    rules = with_value_of_wait(app.policy, value_of_wait)
    snapshot, decided = decide(dry_run(app, seams, now, rules)) if seams else preview(app.deps, releases=True)
    known = _known(trace).foretold if trace else None
    ways = give_way(decided, snapshot.view, snapshot.memory, rules, snapshot.now, known, pod)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text({"at": snapshot.now, "value_of_wait": rules.value_of_wait, "give_way": ways}, "number"))
        return
    said = [*lines(ways, len(ways), 0 if pod else count_unweighed(decided))] if ways else [_nothing(pod, decided)]
    typer.echo(plan_source(app, REMEMBERS_NOTHING if seams else app.settings.state, of_files(pods, nodes)).of)
    _say(said, bool(ways), bool(rules.value_of_wait), [] if seams else _due(app, snapshot, decided, pod))


def _due(app: "App", snapshot: "Snapshot", decided: "Plan", pod: str) -> list[str]:
    """What the next tick does for the pod, or for all, by the deployment's own policy and what it remembers."""
    from pilotlight.flow.interruption.preempting import due_now

    return [
        f"At the next tick {way.running} is asked to save, and gives way to {way.pod}: its class consents."
        for way, _, _ in due_now(app.deps, snapshot, decided)
        if not pod or pod in (way.pod, way.pod.partition("/")[2], way.pod_uid)
    ]


def _say(said: list[str], advised: bool, worth: bool, due: list[str]) -> None:
    for line in said:
        typer.echo(line)
    if advised and not worth:
        typer.echo("Waiting is worth nothing by the policy: set value_of_wait, or try --value-of-wait.")
    for line in due:
        typer.echo(line)
    if advised and not due:
        typer.echo("This is advice: nothing is preempted.")


def _known(path: Path) -> "RunLengths":
    from pilotlight.tools.advice.run_groups import learnt
    from pilotlight.tools.replay.traces.trace_file import read_trace

    return learnt(read_trace(path))


def _nothing(pod: str, decided: "Plan") -> str:
    """Why there is no advice."""
    if not pod:
        from pilotlight.decide.interruption.give_way import short_of

        if short := short_of(decided):
            waits = ", ".join(sorted({name for group in short for name in group.pods})[:SHOWN])
            return f"no pod that runs is in a place that would hold one of those that wait: {waits}"
        return "no pod waits for a cap, a budget or capacity"
    for group in decided.pods:
        names = (*group.pods, *group.uids, *(name.partition("/")[2] for name in group.pods))
        if pod in names:
            return f"{pod}: {group.verdict}, {group.why}; nothing that runs is in a place that would help it"
    raise Failed(f"no GPU pod {pod!r} waits; `pilotlight plan` names those that do")

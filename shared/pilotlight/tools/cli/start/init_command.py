"""``pilotlight init``: a first policy, written from what a cluster shows."""

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.tools.cli.real_cluster import Kubeconfig, settings_for

if TYPE_CHECKING:
    from pilotlight.facts.capacity import ClusterView
    from pilotlight.facts.offers.catalog import Catalog


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(init)


def init(
    pods: Annotated[str, typer.Option(help="What `kubectl get pods -A -o json` prints; - for stdin.")] = "",
    nodes: Annotated[str, typer.Option(help="What `kubectl get nodes -o json` prints; - for stdin.")] = "",
    context: Annotated[str, typer.Option(help="Instead of files: look at the cluster of this context.")] = "",
    kubeconfig: Kubeconfig = "",
    output: Annotated[str, typer.Option("--output", "-o", help="Where the policy goes; - for stdout.")] = "policy.yaml",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="What was written and assumed, as JSON.")] = False,
) -> None:
    """Write a first policy for a cluster: its pools with GPUs, with comments on what else may be said.

    Reads two files, or a cluster; says what it assumed, and what to type next. Only --force writes over a file.

    Examples: [bold]pilotlight init --context prod[/bold];
    [bold]pilotlight init --pods pods.json --nodes nodes.json[/bold]
    """
    from pilotlight.codec.policy_file import read_policy
    from pilotlight.tools.install.first_policy import first_policy
    from pilotlight.tools.report.texts.first_policy_text import assumed_lines, policy_text

    if pods and nodes and (context or kubeconfig):
        raise BadInput("--context looks at a cluster, --pods and --nodes at files: name one of them")
    if not force and output != "-" and Path(output).exists():
        raise BadInput(f"{output} is there: name another by -o, or write over it by --force")
    view, catalog, source = _from_files(pods, nodes) if pods or nodes else _from_cluster(context, kubeconfig)
    found = first_policy(view, catalog)
    text = policy_text(found, source)
    read_policy(text, output)
    following = _next(output, pods, nodes, context, kubeconfig)
    if output == "-":
        typer.echo(text, nl=False)
        return
    _write(output, text)
    if as_json:
        pools = {one.name: one.pool for one in found.pools}
        told = {"policy": output, "pools": pools, "assumed": found.assumed, "next": following}
        typer.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    typer.echo(f"wrote {output}: {len(found.pools)} pool{'s' * (len(found.pools) != 1)}, from {source}")
    for line in [*assumed_lines(found.assumed), "next:", *(f"  {command}" for command in following)]:
        typer.echo(line)


def _from_files(pods: str, nodes: str) -> "tuple[ClusterView, Catalog, str]":
    from pilotlight.facts.policy import Policy
    from pilotlight.settings import Settings
    from pilotlight.tools.cli.cluster_files import FileCluster
    from pilotlight.tools.cli.start.plan_command import read_files
    from pilotlight.wiring import App

    if not (pods and nodes):
        raise BadInput("name two files by --pods and --nodes, or a cluster by --context")
    waiting, there = read_files([pods, nodes])
    cluster = FileCluster(waiting, there, [], Policy(version=1))
    return cluster.observe(), App(Settings()).catalog, f"{pods} and {nodes}"


def _from_cluster(context: str, kubeconfig: str) -> "tuple[ClusterView, Catalog, str]":
    from pilotlight.facts.policy import Policy
    from pilotlight.wiring import App

    settings = settings_for(context, kubeconfig)
    site = App(msgspec.structs.replace(settings, policy="", catalog=""), policy=Policy(version=1))
    [name] = site.clusters or ("",)
    return site.for_cluster(name).deps.cluster.observe(), site.catalog, f"cluster {name}"


def _write(output: str, text: str) -> None:
    """All of it or nothing: the file is put in its place when it is whole."""
    path = Path(output)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise BadInput(f"{output}: cannot be written: {error.strerror}") from None


def _next(output: str, pods: str, nodes: str, context: str, kubeconfig: str) -> Sequence[str]:
    """The command to type next."""
    policy = shlex.quote(output)
    named = {"--pods": pods, "--nodes": nodes, "--context": context, "--kubeconfig": kubeconfig}
    where = "".join(f" {option} {shlex.quote(value)}" for option, value in named.items() if value)
    following = [f"pilotlight check {policy}", f"pilotlight plan{where} --policy {policy}"]
    return following if pods or nodes else [*following, f"pilotlight doctor{where} --policy {policy}"]

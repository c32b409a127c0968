"""``pilotlight init``: a first policy, written from what a cluster shows."""

import shlex
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import msgspec
import typer

from pilotlight.codec.policy_values import MOST
from pilotlight.errors import BadInput
from pilotlight.facts.modes import Mode
from pilotlight.tools.cli.real_cluster import Kubeconfig, settings_for
from pilotlight.tools.cli.whole_file import see_writable, write_whole

if TYPE_CHECKING:
    from pilotlight.facts.capacity import ClusterView
    from pilotlight.facts.offers.catalog import Catalog
    from pilotlight.tools.install.first_policy import FirstPolicy


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(init)


def init(
    pods: Annotated[str, typer.Option(help="Output of `kubectl get pods -A -o json`; - for stdin.")] = "",
    nodes: Annotated[str, typer.Option(help="Output of `kubectl get nodes -o json`; - for stdin.")] = "",
    context: Annotated[str, typer.Option(help="Instead of files: look at the cluster of this context.")] = "",
    kubeconfig: Kubeconfig = "",
    output: Annotated[str, typer.Option("--output", "-o", help="Where the policy goes; - for stdout.")] = "policy.yaml",
    budget: Annotated[
        str, typer.Option(help="Dollars a month that may be spent; 0 for no budget.", metavar="USD")
    ] = "",
    mode: Annotated[str, typer.Option(help="Allowed actions: observe, advise, scale-up or act.")] = "",
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The assumptions and the file written, as JSON.")] = False,
) -> None:
    """Write a first policy for a cluster: its pools with GPUs, with comments on what else may be said.

    Reads two files, or a cluster; says what it assumed, whom taints keep off, and last what to type next. On a terminal
    it asks for a monthly budget and a mode that no option gives. Only --force writes over a file.

    Examples: [bold]pilotlight init --context prod[/bold];
    [bold]pilotlight init --pods pods.json --nodes nodes.json[/bold]
    """
    from pilotlight.codec.policy_file import read_policy
    from pilotlight.tools.install.first_policy import first_policy
    from pilotlight.tools.report.texts.first_policy_text import policy_text, runs_assumed

    if pods and nodes and (context or kubeconfig):
        raise BadInput("--context looks at a cluster, --pods and --nodes at files: name one of them")
    if not force and output != "-" and Path(output).exists():
        raise BadInput(f"{output} is there: name another by -o, or write over it by --force")
    see_writable(output)
    usd, chosen = _usd(budget), _mode(mode)
    view, catalog, source = _from_files(pods, nodes) if pods or nodes else _from_cluster(context, kubeconfig)
    if _may_ask(output, as_json):
        usd, chosen = _asked(budget, mode)
    found = first_policy(view, catalog)
    found = found if usd is None else found._replace(assumed=(*found.assumed, *runs_assumed()))
    text = policy_text(found, source, usd, chosen)
    read_policy(text, output)
    following = f"pilotlight check {shlex.quote(output)}"
    if output == "-":
        typer.echo(text, nl=False)
        return
    write_whole(output, text)
    if as_json:
        typer.echo(_as_json(output, found, following))
        return
    _tell(output, source, found, following, budgeted=usd is not None)


def _may_ask(output: str, as_json: bool) -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and output != "-" and not as_json


def _as_json(output: str, found: "FirstPolicy", following: str) -> str:
    pools = {one.name: one.pool for one in found.pools}
    told = {"policy": output, "pools": pools, "assumed": found.assumed, "kept_off": found.kept_off, "next": following}
    return msgspec.json.format(msgspec.json.encode(told)).decode()


def _asked(budget: str, mode: str) -> tuple[Decimal | None, str]:
    """The month's dollars and the mode, asked for where no option gives them."""
    budget = budget or typer.prompt("Dollars a month that may be spent (0: no budget)", "0")
    return _usd(budget), _mode(mode or typer.prompt(f"What may it do ({', '.join(MODES)})", "advise"))


def _tell(output: str, source: str, found: "FirstPolicy", following: str, *, budgeted: bool) -> None:
    """What was written and assumed, and last the next command."""
    from pilotlight.tools.cli.printing import say
    from pilotlight.tools.report.texts.first_policy_text import assumed_lines

    say([f"wrote {output}: {len(found.pools)} pool{'s' * (len(found.pools) != 1)}, from {source}"])
    for line in [*assumed_lines(found.assumed), *found.kept_off]:
        say([line])
    if not budgeted:
        say(["no budget: caps alone bound what is spent; write one by --budget USD, or under budgets"])
    say([f"next: {following}"])


MODES: tuple[str, ...] = get_args(Mode)


def _usd(text: str) -> Decimal | None:
    """Dollars a month; None where none are given."""
    try:
        usd = Decimal(text.removeprefix("$") or 0)
    except InvalidOperation:
        usd = Decimal(-1)
    if not usd.is_finite() or usd < 0:
        raise BadInput(f"--budget {text}: is no sum of dollars: write one as 2000, or 0 for no budget")
    if usd > MOST:
        raise BadInput(f"--budget {text}: is more than {MOST:,}")
    return usd or None


def _mode(text: str) -> str:
    if text and text not in MODES:
        raise BadInput(f"--mode {text}: is no mode: write {', '.join(MODES)}")
    return text


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
    site = App(msgspec.structs.replace(settings, policy="", catalog="", state="memory:"), policy=Policy(version=1))
    [name] = site.clusters or ("",)
    return site.for_cluster(name).deps.cluster.observe(), site.catalog, f"cluster {name}"

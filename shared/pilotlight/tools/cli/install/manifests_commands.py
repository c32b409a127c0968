"""``pilotlight manifests``: Kubernetes objects made from your policy and prices, printed for `kubectl apply -f -`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.tools.cli.install.placement_commands import affinity
from pilotlight.tools.cli.install.sharing_command import sharing
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.tools.manifests.pools_on_sale import Sold, Team
    from pilotlight.wiring import App

Policy = Annotated[str, typer.Option("--policy", help="Policy file; left out: that of the deployment.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
Namespaces = Annotated[
    list[str] | None, typer.Option("--namespace", help="TEAM=NAMESPACE, where a team's namespace has another name.")
]
Target = Annotated[str, typer.Argument(help="NAMESPACE/DEPLOYMENT.", metavar="DEPLOYMENT")]
Least = Annotated[int, typer.Option(min=0, help="Least replicas.")]
Most = Annotated[int, typer.Option(min=0, help="Most replicas; left out: as many as there may be GPUs.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Manifests that are made from your policy and prices.")
    group.callback()(_manifests)
    group.command("placement")(affinity)
    group.command()(sharing)
    for command in (rules, quota, queues, nodepools, prepull, hpa, keda):
        group.command()(command)
    app.add_typer(group, name="manifests")


def _manifests() -> None:
    """Manifests that are made from your policy and prices."""


def rules(policy: Policy = "", as_json: AsJson = False) -> None:
    """Print admission rules for GPU pods, which warn or deny where a namespace opted in.

    Requests equal limits, a toleration of a pool's taint, a selector or affinity to a pool, labels of team and class. A
    namespace opts in by its label pilotlight.dev/gpu-rules, "warn" or "deny"; others are not touched.

    Example: [bold]pilotlight manifests rules --policy policy.yaml | kubectl apply -f -[/bold]
    """
    from pilotlight.tools.manifests.admission_rules import gpu_rules

    _print(gpu_rules(_sold(_app(policy))), as_json)


def quota(policy: Policy = "", namespace: Namespaces = None, as_json: AsJson = False) -> None:
    """Print a ResourceQuota and a LimitRange for each team that has a budget.

    A team may have as many GPUs at once as an hour of its budget pays for at the least price. It may have no more than
    all pools may have; a container no more than the largest node has.

    Example: [bold]pilotlight manifests quota --policy policy.yaml --namespace research=ml-research[/bold]
    """
    from pilotlight.tools.manifests.gpu_quota import quotas

    pools, teams = _shares(policy, namespace)
    _print(quotas(pools, teams), as_json)


def queues(
    policy: Policy = "",
    queue_of: Annotated[Literal["kueue", "volcano"], typer.Option("--for", help="Kueue or Volcano.")] = "kueue",
    namespace: Namespaces = None,
    as_json: AsJson = False,
) -> None:
    """Print queues for each team that has a budget: Kueue's with a flavor a pool, or Volcano's.

    Kueue's are one cohort: what a team does not use the others may borrow. Its objects are of v1beta2.

    Example: [bold]pilotlight manifests queues --policy policy.yaml --for volcano[/bold]
    """
    from pilotlight.tools.manifests.gpu_quota import kueue, volcano

    pools, teams = _shares(policy, namespace)
    _print((kueue if queue_of == "kueue" else volcano)(pools, teams), as_json)


def nodepools(
    policy: Policy = "",
    node_class: Annotated[str, typer.Option(help="The EC2NodeClass that the pools use.")] = "default",
    as_json: AsJson = False,
) -> None:
    """Print Karpenter's NodePools of the policy's pools, for clusters where Karpenter buys.

    Pilotlight never scales a pool that another autoscaler does: keep these pools' mode at advise.

    Example: [bold]pilotlight manifests nodepools --policy policy.yaml --node-class gpu[/bold]
    """
    from pilotlight.tools.manifests.node_objects import nodepools as made

    _print(made(_sold(_app(policy)), node_class), as_json)


def prepull(
    image: Annotated[list[str], typer.Option(help="An image that GPU nodes should have; may be repeated.")],
    policy: Policy = "",
    namespace: Annotated[str, typer.Option(help="Where the DaemonSet lies.")] = "pilotlight",
    as_json: AsJson = False,
) -> None:
    """Print a DaemonSet that pulls images on GPU nodes as they join. The images need a shell (`sh`).

    Example: [bold]pilotlight manifests prepull --image ghcr.io/acme/trainer:1 --policy policy.yaml[/bold]
    """
    from pilotlight.tools.manifests.node_objects import prepull as made

    _print(made(_sold(_app(policy)), image, namespace), as_json)


def hpa(
    deployment: Target,
    policy: Policy = "",
    least: Least = 1,
    most: Most = 0,
    percent: Annotated[int, typer.Option(min=1, max=100, help="GPU utilisation to hold.")] = 70,
    adapter_namespace: Annotated[str, typer.Option(help="Where the Prometheus Adapter runs.")] = "monitoring",
    as_json: AsJson = False,
) -> None:
    """Print an HPA on DCGM's GPU utilisation, with the rule that the Prometheus Adapter needs for it.

    Example: [bold]pilotlight manifests hpa serving/chat --policy policy.yaml --most 4[/bold]
    """
    from pilotlight.tools.manifests.scaling_objects import hpa as made

    namespace, name = _target(deployment)
    _print(made(namespace, name, least, _most(policy, least, most), percent, adapter_namespace), as_json)


def keda(
    deployment: Target,
    query: Annotated[str, typer.Option(help="PromQL that counts the work that waits.")],
    policy: Policy = "",
    least: Least = 0,
    most: Most = 0,
    each: Annotated[int, typer.Option(min=1, help="How much of it is one replica's.")] = 10,
    prometheus: Annotated[str, typer.Option(help="Address of Prometheus.")] = "http://prometheus.monitoring:9090",
    as_json: AsJson = False,
) -> None:
    """Print a KEDA ScaledObject that goes from zero to as many replicas as there may be GPUs.

    Example: [bold]pilotlight manifests keda serving/chat --query 'sum(queue_length)' --policy policy.yaml[/bold]
    """
    from pilotlight.tools.manifests.scaling_objects import keda as made

    namespace, name = _target(deployment)
    _print(made(namespace, name, least, _most(policy, least, most), prometheus, query, each), as_json)


def _app(policy: str) -> "App":
    from pilotlight.settings import deployed_settings
    from pilotlight.wiring import App

    settings = deployed_settings()
    return App(msgspec.structs.replace(settings, policy=policy or settings.policy))


def _sold(app: "App") -> "tuple[Sold, ...]":
    from pilotlight.tools.manifests.pools_on_sale import sold_pools

    return sold_pools(app.policy, app.catalog)


def _shares(policy: str, namespaces: list[str] | None) -> "tuple[tuple[Sold, ...], tuple[Team, ...]]":
    from pilotlight.tools.manifests.pools_on_sale import teams

    named = [pair.partition("=") for pair in namespaces or ()]
    if wrong := [team for team, equals, name in named if not (team and equals and name)]:
        raise BadInput(f"--namespace {wrong[0]}: write TEAM=NAMESPACE")
    app = _app(policy)
    pools = _sold(app)
    return pools, teams(app.policy, pools, {team: name for team, _, name in named})


def _most(policy: str, least: int, most: int) -> int:
    """Never more replicas than GPUs. Raises ``BadInput`` for more than there may be."""
    gpus = sum(each.gpus for each in _sold(_app(policy)))
    if max(most, least) > gpus:
        raise BadInput(
            f"{max(most, least)} replicas are more than the {count_of(gpus, 'GPU')} that the policy's pools may have"
        )
    return most or gpus


def _target(text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise BadInput(f"{text!r} is no deployment: write NAMESPACE/DEPLOYMENT")
    return namespace, name


def _print(objects: Iterable[dict[str, Any]], as_json: bool) -> None:
    import yaml

    made = list(objects)
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(made)).decode())
    else:
        # JSON first: what two objects share is written out in each, without YAML's anchors.
        typer.echo(yaml.safe_dump_all(msgspec.json.decode(msgspec.json.encode([m]))[0] for m in made), nl=False)

"""``pilotlight connect``: an account of Pilotlight's own on a cluster, with a token that ends."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from pilotlight.errors import BadInput
from pilotlight.settings import Settings, default_file, read
from pilotlight.tools.cli.real_cluster import Context, Kubeconfig, settings_for
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
    from pilotlight.adapters.cluster.kubernetes.transport import Api
    from pilotlight.tools.install.connect_account import Minted, Object

MANIFESTS = "infra/kubernetes"
DAY_S = 86_400
EvictIn = Annotated[
    list[str] | None,
    typer.Option("--evict-in", help="With --act: evict pods of this namespace, again for more; left out: of any."),
]
Actor = Annotated[
    list[str] | None, typer.Option(help="A user the cluster knows by itself (GKE: a function's e-mail) that acts.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(connect)


def connect(
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    act: Annotated[bool, typer.Option("--act", help="Also what buying and giving back need.")] = False,
    evict_in: EvictIn = None,
    kueue: Annotated[bool, typer.Option("--kueue", help="Also what answering Kueue's checks needs.")] = False,
    gke_queue: Annotated[bool, typer.Option("--gke-queue", help="Also what asking GKE's queue needs.")] = False,
    karpenter: Annotated[bool, typer.Option("--karpenter", help="Also what limits of NodePools need.")] = False,
    claims: Annotated[bool, typer.Option("--karpenter-claims", help="Also what buying by NodeClaims needs.")] = False,
    reclaim: Annotated[bool, typer.Option("--reclaim", help="Also what putting idle owners to rest needs.")] = False,
    read_only: Annotated[bool, typer.Option("--read-only", help="A second account, which can never act.")] = False,
    actor: Actor = None,
    reader: Annotated[list[str] | None, typer.Option(help="The same, of one that only looks.")] = None,
    days: Annotated[int, typer.Option(min=1, max=365, help="Days until the token ends, at most.")] = 30,
    out: Annotated[str, typer.Option(help="Its kubeconfig; left out: .pilotlight/CONTEXT.kubeconfig.")] = "",
    stdout: Annotated[bool, typer.Option("--stdout", help="Print the kubeconfig; write no file.")] = False,
    rotate: Annotated[bool, typer.Option("--rotate", help="Only a new token, for the account that is there.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take all of it out again, of every version.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; do nothing.")] = False,
    policy: Annotated[str, typer.Option(help="Policy file, whose pools --act is limited to.")] = "",
) -> None:
    """Make Pilotlight's account on a cluster: namespace, rights and a token that ends, in a kubeconfig of its own.

    It reads, and nothing else, without --act. Your own credential is used for this once and stored nowhere.
    With --actor and --reader it binds users that the cluster knows by themselves, and makes no token.
    Example: [bold]pilotlight connect --context prod[/bold]
    """
    from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
    from pilotlight.adapters.cluster.kubernetes.transport import Api
    from pilotlight.tools.install.cloud_users import EXTRAS

    users = Users(tuple(actor or ()), tuple(reader or ()))
    asked = zip(EXTRAS, (kueue, gke_queue, karpenter, claims, reclaim), strict=True)
    rights = RightsAsked(act, read_only, tuple(name for name, on in asked if on), tuple(evict_in or ()))
    _agree(rights, users, rotate=rotate, remove=remove, stdout=stdout)
    settings = settings_for(context, kubeconfig, policy=policy)
    source = source_of(settings.api, settings.environ, settings.role_arn)
    api = Api(source)
    if remove:
        return _remove(api, dry_run)
    if not rotate:
        _apply(api, _objects(api, settings, rights, users), act, dry_run)
    path = "" if stdout else out or f".pilotlight/{settings.cluster_name}.kubeconfig"
    if any(users):
        _say("no token was made: they show their own" if not dry_run else "nothing was changed")
    elif dry_run:
        _say(f"would make a token of {count_of(days, 'day')}, in {path or 'the output'}; nothing was changed")
    else:
        _make_token(api, source.access(), settings.cluster_name, path, days, read_only)


def _make_token(api: "Api", access: "Access", name: str, path: str, days: int, read_only: bool) -> None:
    """A token of our account, in a kubeconfig of its own."""
    from pilotlight.tools.install import connect_account

    minted = connect_account.mint(api, days * DAY_S, connect_account.READER if read_only else connect_account.ACCOUNT)
    _hand_out(connect_account.kubeconfig(access, minted.token, name), path)
    _explain(minted, path, days)
    if access.proxy:
        _say("this machine reaches the cluster by a proxy, which the new kubeconfig does not name: add it to try")


class Users(NamedTuple):
    """Users that the cluster knows by themselves: who acts, and who only looks."""

    actors: tuple[str, ...]
    readers: tuple[str, ...]


class RightsAsked(NamedTuple):
    """Rights that are asked for beside looking."""

    act: bool
    read_only: bool
    extras: tuple[str, ...] = ()  # Files of rbac/ that are off unless asked for.
    evict_in: tuple[str, ...] = ()


def _agree(rights: RightsAsked, users: Users, *, rotate: bool, remove: bool, stdout: bool) -> None:
    """Refuse options that contradict each other."""
    from pilotlight.tools.install.cloud_users import TO_ACT

    if remove and (rotate or stdout or any(rights) or any(users)):
        raise BadInput("--remove goes with no other option but --dry-run and those that name the cluster")
    if rights.read_only and (rights.act or rights.extras or any(users)):
        raise BadInput("--read-only makes an account that never acts: leave out all other rights, --actor and --reader")
    for asked, why in (
        (rights.evict_in, "--evict-in says where --act may evict: add --act"),
        *((name in TO_ACT, f"--{name} is for who acts: add --act") for name in rights.extras),
        (users.actors, "--actor names who acts: add --act, and --policy for the pools that it is limited to"),
    ):
        if asked and not rights.act:
            raise BadInput(why)
    if any(users) and rotate:
        raise BadInput("--rotate makes a token, and --actor and --reader need none: leave out one of them")


def _hand_out(text: str, path: str) -> None:
    """The kubeconfig, to a file of its owner alone, or to the output."""
    from pilotlight.tools.install import connect_account

    if path:
        connect_account.write_private(Path(path), text)
    else:
        typer.echo(text, nl=False)


def _apply(api: "Api", objects: "list[Object]", act: bool, dry_run: bool) -> None:
    """Our account and its rights, a line an object."""
    from pilotlight.tools.install import connect_account

    for step in connect_account.apply(api, objects, dry_run=dry_run):
        _say(f"{step.verb if dry_run else _DONE[step.verb]} {step.kind} {step.name}")
    if not act and connect_account.has_role(api, "act"):
        _say("the account also has the rights of --act; to take them: kubectl delete clusterrolebinding pilotlight-act")


_DONE = {"create": "created", "change": "changed", "keep": "kept", "remove": "removed", "reopen": "reopened"}


def _remove(api: "Api", dry_run: bool) -> None:
    """Our account, its rights, what limits them, and our marks on nodes: a line an object."""
    from pilotlight.tools.install import remove_account

    found = False
    for step in remove_account.remove(api, dry_run=dry_run):
        found = True
        why = f": {step.why}" if step.why else ""
        _say(f"{step.verb if dry_run else _DONE[step.verb]} {step.kind} {step.name}{why}")
    if not found:
        _say("nothing of Pilotlight's is on this cluster")
    elif dry_run:
        _say("nothing was changed")


def _objects(api: "Api", settings: Settings, rights: RightsAsked, users: Users) -> "list[Object]":
    """The manifests to apply; with ``act`` the policy that limits it, and all who act, to the pools too."""
    from pilotlight.tools.checkup.account_limits import cloud_pool_names
    from pilotlight.tools.install import cloud_users
    from pilotlight.tools.install.admission_policy import limit_to
    from pilotlight.tools.install.connect_account import read_objects
    from pilotlight.tools.install.evicting_roles import evict_in
    from pilotlight.wiring import App

    act = rights.act
    acting = users.actors or (cloud_users.acting(api) if act or users.readers else ())
    given = cloud_users.bindings(acting, users.readers, rights.extras)
    bound = list(given) if any(users) else []
    names = ["namespace.yaml", "rbac/observe.yaml", *(["rbac/read.yaml"] if rights.read_only else [])]
    names += [f"rbac/{name}.yaml" for name in rights.extras]
    if act:
        # What limits a right is there before the right is.
        limits = ("nodes", "tolerations", "evictions", "homes")
        names += [*(f"admission/{name}.yaml" for name in limits), "rbac/act.yaml"]
    objects = read_objects({name: read(str(default_file(f"{MANIFESTS}/{name}"))) for name in names})
    pools = cloud_pool_names(App(settings).policy) if act else ()
    if act and not pools:
        raise BadInput("the policy has no pools: there is nothing to act on; name it with --policy")
    limit_to(objects, pools, acting)
    if rights.evict_in:
        objects = list(evict_in(objects, rights.evict_in, acting))
    return objects + bound


def _explain(minted: "Minted", path: str, days: int) -> None:
    left = (minted.ends - datetime.now(UTC)).total_seconds() / DAY_S
    shorter = f" (the cluster allows {left:.1f} days, not {days})" if left < days - 1 else ""
    _say(f"the token ends {minted.ends:%Y-%m-%d %H:%M} UTC{shorter}; pilotlight connect --rotate makes the next")
    _say("tokens made before stay good until they end; deleting the ServiceAccount ends all of its own")
    if path:
        _say(f"wrote {path}, readable by you alone: PILOTLIGHT_API=kubeconfig:{path}")
        _say("for a function: put that file into its secret store, the secret into a variable NAME, and set")
        _say("PILOTLIGHT_API=kubeconfig-env:NAME; then delete the file")
        _say(f"try it: pilotlight doctor --kubeconfig {path}")


def _say(line: str) -> None:
    """On stderr: with ``--stdout`` the output is the kubeconfig alone."""
    typer.echo(line, err=True)

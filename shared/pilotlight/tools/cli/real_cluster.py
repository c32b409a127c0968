"""Which real cluster a command means: ``--context`` and ``--kubeconfig``, else what the environment names."""

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.settings import Settings, deployed_settings

Context = Annotated[str, typer.Option(help="A context of your kubeconfig; left out: its current one.")]
Named = Annotated[str, typer.Option(help="A context of your kubeconfig; left out: the cluster that is set up.")]
Kubeconfig = Annotated[str, typer.Option(help="A kubeconfig file; left out: KUBECONFIG, or ~/.kube/config.")]
USUAL = Path("~/.kube/config")


def settings_for(context: str, kubeconfig: str, *, policy: str = "", catalog: str = "") -> Settings:
    """The environment's settings for one real cluster; advice alone unless it says who sells the nodes.

    A context or kubeconfig that is named goes before PILOTLIGHT_API and PILOTLIGHT_CLUSTERS. Raises ``BadInput`` where
    no cluster is named at all.
    """
    settings, named = deployed_settings(), bool(context or kubeconfig)
    settings = msgspec.structs.replace(settings, policy=policy or settings.policy, catalog=catalog or settings.catalog)
    if not named and (settings.clusters or settings.world):
        return settings
    if not named and settings.api:
        return msgspec.structs.replace(settings, pools=settings.pools or "advisor")
    file = _file(kubeconfig or settings.environ.get("KUBECONFIG", ""), context)
    context = context or _current(file)
    return msgspec.structs.replace(
        settings,
        cluster=settings.cluster or context,
        clusters={},
        api=f"kubeconfig:{file}" + (f"#{context}" if context else ""),
        pools=settings.pools or "advisor",
        mode=settings.mode if settings.environ.get("PILOTLIGHT_MODE") else "advise",
    )


def current_context(settings: Settings) -> str:
    """The context that kubectl would take; empty where no kubeconfig is there or it names none."""
    try:
        return _current(_file(settings.environ.get("KUBECONFIG", ""), ""))
    except BadInput:
        return ""


def _current(file: Path) -> str:
    """A file's current context; empty where it names none, or is no kubeconfig: its reader says so."""
    from pilotlight.adapters.cluster.kubernetes.access.kubeconfig import Kubeconfig

    try:
        return Kubeconfig(file.read_bytes, str(file)).current()
    except BadInput:
        return ""


def _file(named: str, context: str) -> Path:
    """Of the files that are named as KUBECONFIG names them, the first that is there and has the context."""
    files = [Path(path).expanduser() for path in named.split(os.pathsep) if path] or [USUAL.expanduser()]
    there = [file for file in files if file.is_file()]
    if not there and files[0].is_dir():
        raise BadInput(f"{files[0]}: is a directory; name a kubeconfig in it by --kubeconfig")
    if not there:
        has = f"the one that has context {context} by --kubeconfig or KUBECONFIG" if context else ""
        how = has or "one by --kubeconfig, or a cluster by --context or PILOTLIGHT_API"
        raise BadInput(f"{files[0]}: no such kubeconfig; name {how}")
    return next((file for file in there if not context or context in file.read_text("utf-8", "replace")), there[0])

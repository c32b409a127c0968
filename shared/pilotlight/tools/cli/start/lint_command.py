"""``pilotlight lint``: faults of manifests, PromQL and clouds' commands that cost GPUs, before they reach a cluster."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.tools.lint.fault import Lint, Site

EXIT_FOUND = 1
LARGEST = 2_000_000
"""Bytes: a larger file is no manifest."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(lint)


def lint(
    folder: Annotated[Path, typer.Argument(help="A folder, or one file.", metavar="DIR")],
    policy: Annotated[
        str, typer.Option(help="Policy file: replicas are held against the most GPUs that its pools may have.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say what is wrong in the manifests, dashboards, rules and scripts below a folder, each with its fix.

    Reads *.yaml, *.yml, *.json, *.promql and *.sh; touches no cluster. Exit code 0 where nothing is found, 1 where
    something is (a fault or a warning), 2 where the folder cannot be read.

    Example: [bold]pilotlight lint deploy/ --policy policy.yaml[/bold]
    """
    from pilotlight.tools.lint.documents import READ
    from pilotlight.tools.lint.documents import lint as look

    if not folder.exists():
        raise BadInput(f"{folder}: there is no such file or folder; name one that is there")
    texts = dict(_texts(folder, READ))
    if not texts:
        raise BadInput(f"{folder}: holds no file that ends with {', '.join(READ)}; name another folder")
    found = look(texts, _site(policy))
    if as_json:
        typer.echo(msgspec.json.encode({"files": len(texts), "found": found}).decode())
    else:
        _print(found, len(texts))
    if found:
        raise typer.Exit(EXIT_FOUND)


def _texts(folder: Path, endings: tuple[str, ...]) -> list[tuple[str, str]]:
    """Names, as seen from the folder, with their text; hidden folders are passed by."""
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    out = []
    for path in files:
        name = path.name if folder.is_file() else path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in name.split("/"))
        if name.endswith(endings) and not hidden and path.stat().st_size <= LARGEST:
            try:
                out.append((name, path.read_text(encoding="utf-8", errors="replace")))
            except OSError as error:
                raise BadInput(f"{path}: {error.strerror}") from None
    return out


def _site(policy: str) -> "Site":
    from pilotlight.settings import deployed_settings
    from pilotlight.tools.lint.fault import Site
    from pilotlight.wiring import App

    settings = deployed_settings()
    named = policy or settings.policy
    app = App(msgspec.structs.replace(settings, policy=named))
    gpus_of = {name: machine.gpus for name, machine in app.catalog.instance_types.items()}
    pools = app.policy.pools.values()
    most = sum(pool.max * gpus_of.get(pool.instance_type, 0) for pool in pools if pool.max is not None)
    return Site(gpus_of=gpus_of, most_gpus=most if named else None)


def _print(found: "tuple[Lint, ...]", files: int) -> None:
    for each in found:
        typer.echo(f"{each.level}: {each.where}: {each.what}; fix: {each.fix} [{each.rule}]")
    counts = Counter(each.level for each in found)
    typer.echo(
        f"{count_of(files, 'file')}: {count_of(counts['fault'], 'fault')}, {count_of(counts['warning'], 'warning')}"
    )

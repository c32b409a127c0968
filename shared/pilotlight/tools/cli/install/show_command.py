"""``pilotlight show``: guides, manifests, samples and examples that come with Pilotlight, a checkout or none."""

from pathlib import Path
from typing import Annotated

import typer

from pilotlight.codec.policy_values import suggestion
from pilotlight.errors import BadInput
from pilotlight.settings import default_file, read

FOLDERS = (
    *("docs/guides", "infra/kubernetes", "infra/prometheus", "infra/grafana"),
    *("examples", "policies", "events", "data"),
)
"""Those of a checkout that the wheel holds too, and that people are sent to."""
TEXTS = (".md", ".yaml", ".json")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(show)


def show(
    path: Annotated[str, typer.Argument(help="One of the paths that it lists; left out: all of them.")] = "",
) -> None:
    """Print a guide, a manifest or a sample that comes with Pilotlight. Without PATH it lists what there is.

    Example: [bold]pilotlight show infra/kubernetes/rbac/reclaim.yaml | kubectl apply -f -[/bold]
    """
    found = held_files()
    if not path:
        typer.echo("\n".join(found))
        return
    if path not in found:
        close = suggestion(path, list(found)).partition(" (known")[0]
        raise BadInput(f"{path}: no such file comes with Pilotlight{close}; pilotlight show lists them all")
    typer.echo(read(str(found[path])).decode(), nl=False)


def held_files() -> dict[str, Path]:
    """Texts that are held, by their paths in a checkout."""
    held = ((folder, default_file(folder)) for folder in FOLDERS)
    return {
        f"{folder}/{file.relative_to(at).as_posix()}": file
        for folder, at in held
        for file in sorted(at.rglob("*"))
        if file.suffix in TEXTS
    }

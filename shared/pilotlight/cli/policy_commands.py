"""``pilotlight check`` and ``pilotlight schema``: the policy file, before it is used."""

import json
from typing import Annotated

import typer

from pilotlight.errors import BadPolicy
from pilotlight.settings import read

EXIT_BAD_INPUT = 2


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(check)
    app.command()(schema)


def check(
    policy: Annotated[str, typer.Argument(help="The policy file.", metavar="POLICY")],
    as_json: Annotated[bool, typer.Option("--json", help="The problems as JSON.")] = False,
) -> None:
    """Say what is wrong with a policy file, each problem by its path. Exit code 2 when something is.

    Example: [bold]pilotlight check examples/policy.yaml[/bold]
    """
    from pilotlight.codec.policy import read_policy

    problems: list[str] = []
    summary = ""
    try:
        found = read_policy(read(policy), policy)
        summary = f"{policy}: fine ({len(found.pools)} pools, {len(found.schedules)} schedules)"
    except BadPolicy as error:
        problems = error.problems
    if as_json:
        typer.echo(json.dumps({"policy": policy, "valid": not problems, "problems": problems}, indent=2))
    elif summary:
        typer.echo(summary)
    for problem in [] if as_json else problems:
        typer.echo(f"error: {problem}", err=True)
    if problems:
        raise typer.Exit(EXIT_BAD_INPUT)


def schema() -> None:
    """Print the JSON Schema of the policy file, for editors.

    Example: [bold]pilotlight schema > policy.schema.json[/bold]
    """
    from pilotlight.codec.policy import policy_schema

    typer.echo(json.dumps(policy_schema(), indent=2))

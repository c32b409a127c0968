"""``pilotlight whatif``: the articles' worked examples, recomputed, and yours in their place."""

from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow
from typing import Annotated, Any

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.settings import default_file, read
from pilotlight.tools.advice.whatif import Case, read_cases
from pilotlight.units import cents, round_usd, shorten_figure

DATA = "data/whatif/articles.yaml"

MOST = 10**12
"""More of anything is a slip of the pen."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(whatif)


def whatif(
    case: Annotated[str, typer.Argument(help="One case; all where none is named.", metavar="[CASE]")] = "",
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="Another figure for an input of the case.", metavar="KEY=VALUE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Inputs and figures as JSON.")] = False,
) -> None:
    """Recompute the articles' worked examples: scale to zero, KEDA, MIG, commitments, spot and more.

    Example: [bold]pilotlight whatif scale-to-zero --set nodes=4 --set hours_a_day=6[/bold]
    """
    from pilotlight.tools.advice.whatif import CASES, Figure

    where = default_file(DATA)
    cases = read_cases(read(str(where)), str(where))
    if case and case not in cases:
        raise BadInput(f"{case}: no such case; name one of {', '.join(cases)}")
    if changes and not case:
        raise BadInput("--set changes the inputs of one case: name it")
    told: dict[str, tuple[Case, list[Figure]]] = {}
    for name in [case] if case else cases:
        known = _changed(cases[name], changes or [])
        try:
            told[name] = known, CASES[name](known.inputs)
        except (ArithmeticError, DivisionByZero, InvalidOperation, Overflow, ValueError):
            raise BadInput(f"{name}: these inputs have no answer; look at the ones that are zero") from None
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text({name: _json(*one) for name, one in told.items()}))
    else:
        _show(told)


def _changed(case: Case, changes: list[str]) -> Case:
    inputs = dict(case.inputs)
    for change in changes:
        key, _, text = change.partition("=")
        try:
            value = Decimal(text)
        except InvalidOperation:
            raise BadInput(f"--set {change}: write KEY=NUMBER") from None
        if key not in inputs or not value.is_finite() or not 0 <= value <= MOST:
            raise BadInput(f"--set {change}: the inputs are numbers from 0 to {MOST:,}, named {', '.join(inputs)}")
        inputs[key] = value
    return msgspec.structs.replace(case, inputs=inputs)


def _json(case: Case, figures: list[Any]) -> dict[str, Any]:
    return {
        "title": case.title,
        "source": case.source,
        "inputs": case.inputs,
        "figures": [f._asdict() for f in figures],
    }


def _show(told: dict[str, tuple[Case, list[Any]]]) -> None:
    from rich.text import Text

    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    out = console()
    for name, (case, figures) in told.items():
        title = Text.assemble((name, "bold"), f": {case.title}")
        table = Sheet(Column(), Column(kind="figure"), Column(style="dim"), title=title)
        for figure in figures:
            style = "yellow" if figure.printed else ""
            how = f"as printed, not right: {figure.how}" if figure.printed else figure.how
            table.add(Text(figure.name, style=style), Text(_value(figure), style=style), how)
        out.print(table)
        inputs = ", ".join(f"{key} {value}" for key, value in case.inputs.items())
        out.print(Text(f"with {inputs}\n", style="dim"))


def _value(figure: Any) -> str:
    value: Decimal = figure.value
    match figure.unit:
        case "usd":
            exact = round_usd(value) if value >= 1 else shorten_figure(value).normalize()
            return f"${exact:,f}"
        case "usd/h":
            return f"{cents(value)}/h"
        case "share":
            return f"{100 * value:.2f} %"
        case "times":
            return f"{value:.3f}x"
        case "gpus":
            return f"{value:,.0f} GPUs"
        case "gpu-h":
            return f"{value:,.0f} GPU-h"
        case "min":
            return f"{value:,.1f} min"
    return f"{value:,.0f} h"

"""The bar of a sweep: how many of its runs are done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pilotlight.tools.cli.terminal import console_of


@contextmanager
def progress_bar(runs: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr of so many runs; what it gives is told of each that is done."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console_of(stderr=True)) as bar:
        task = bar.add_task("runs", total=runs)
        yield lambda name: bar.update(task, advance=1, description=f"{name} is done")

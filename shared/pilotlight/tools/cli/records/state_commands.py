"""``pilotlight state``: look at what survives between events, and carry it from one store to another.

An exported line is ``{"key": ..., "value": <the record's JSON>}``; a record that is no JSON has ``raw`` in base64.
Stores do not tell when a record ends, so an imported one begins its family's time anew.
"""

import base64
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec
import typer

from pilotlight import typed_json
from pilotlight.errors import BadInput, Conflict, Corrupt, Failed
from pilotlight.ports.state import ABSENT, State
from pilotlight.settings import deployed_settings, read
from pilotlight.state_schema.table import pages, plain
from pilotlight.tools.cli.state_option import line_of_store
from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.units import count_of

CLOSED = "closed/"
"""Sums of days that are over: a backup's may be others by now, and billing ticks count them again."""

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One record of an export: ``value`` or ``raw``."""

    key: str
    value: msgspec.Raw = msgspec.Raw()
    raw: str = ""

    @property
    def record(self) -> bytes:
        """The record as the store holds it."""
        return base64.b64decode(self.raw, validate=True) if self.raw else bytes(self.value)


class Item(NamedTuple):
    """A record as ``ls`` shows it. ``unreadable`` says why, or is empty."""

    key: str
    size: int
    version: int
    unreadable: str


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Look at the state, and carry it to another store.")
    group.command("ls")(ls)
    group.command("get")(get)
    group.command("export")(export)
    group.command("import")(import_)
    group.command("init")(init)
    app.add_typer(group, name="state")


def ls(prefix: Annotated[str, typer.Argument(help="Only keys that begin so.")] = "", as_json: AsJson = False) -> None:
    """List the records: their keys, sizes and versions, and which cannot be read.

    Example: [bold]pilotlight state ls decision/[/bold]
    """
    head = line_of_store()
    items = [Item(key, len(s.value), s.version, _unreadable(key, s.value)) for key, s in pages(_state(), prefix)]
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode([item._asdict() for item in items])).decode())
        return
    from pilotlight.tools.cli.printing import console
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    table = Sheet(Column("key", "name"), Column("bytes", "figure"), Column("version", "figure"), Column())
    for item in items:
        table.add(item.key, f"{item.size:,}", str(item.version), item.unreadable)
    console().print(head, markup=False)
    console().print(table if items else f"no record begins with {prefix!r}" if prefix else "the state is empty")


def get(key: Annotated[str, typer.Argument(help="The whole key, as ls shows it.")]) -> None:
    """Print one record as it is stored. An unreadable one is printed too, and why on stderr.

    Example: [bold]pilotlight state get memory/local[/bold]
    """
    stored = _state().get(key)
    if stored is None:
        raise Failed(f"state {key}: there is no such record, or it has expired; look with `pilotlight state ls`")
    if why := _unreadable(key, stored.value):
        typer.echo(f"warning: {why}", err=True)
    record = _plain(stored.value)
    sys.stdout.buffer.write((msgspec.json.format(record) if _is_json(record) else record) + b"\n")


def export(
    file: Annotated[str, typer.Argument(help="Where to write, or - for stdout.")],
    prefix: Annotated[str, typer.Option(help="Only keys that begin so.")] = "",
) -> None:
    """Write the records as JSON lines, those that cannot be read as well.

    Example: [bold]pilotlight state export state.jsonl[/bold]
    """
    see_writable(file)
    lines = [msgspec.json.encode(_line(key, _plain(stored.value))) for key, stored in pages(_state(), prefix)]
    body = b"".join(line + b"\n" for line in lines)
    if file == "-":
        sys.stdout.buffer.write(body)
        return
    try:
        Path(file).write_bytes(body)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}; name a file that can be written") from None
    typer.echo(f"{count_of(len(lines), 'record')} in {file}")


def import_(
    file: Annotated[str, typer.Argument(help="An export, or - for stdin.")],
    replace: Annotated[bool, typer.Option("--replace", help="Write over records that are there.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and count; write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put an export's records into the state. Nothing is written unless every line can be read.

    Example: [bold]pilotlight state import state.jsonl --dry-run[/bold]
    """
    lines = list(_lines(_body(file).splitlines(), file))
    if not lines:
        raise BadInput(f"{file}: holds no record; give what `pilotlight state export` wrote")
    state = _state()
    put = [line for line in lines if not line.key.startswith(CLOSED)]
    outcomes = [_put(state, line, replace=replace, dry_run=dry_run) for line in put]
    for key, _ in [] if dry_run else list(pages(state, CLOSED)):
        state.delete(key)
    written, kept, left_out = outcomes.count("written"), outcomes.count("kept"), len(lines) - len(put)
    if as_json:
        counts = {"written": written, "kept": kept, "left_out": left_out, "dry_run": dry_run}
        typer.echo(msgspec.json.encode(counts).decode())
        return
    typer.echo(f"{'would write' if dry_run else 'wrote'} {count_of(written, 'record')}")
    if kept:
        typer.echo(f"{count_of(kept, 'record')} there already, left as before; --replace writes over what is there")
    if left_out:
        typer.echo(
            f"{count_of(left_out, 'record')} of closed days left out: their sums are counted again from the days"
        )


def init(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make the state's place ready: a SQLite file, a DynamoDB table with its expiry; of Firestore, see that it answers.

    A record that is there already stays as it is, so it may be run again.

    Example: [bold]pilotlight state init --state dynamodb:pilotlight --dry-run[/bold]
    """
    from pilotlight.tools.install.state_store import state_ready

    settings = deployed_settings()
    done = state_ready(settings.state, settings.environ, dry_run=dry_run)
    if as_json:
        typer.echo(msgspec.json.encode({"state": settings.state, "dry_run": dry_run, "did": done}).decode())
        return
    typer.echo("\n".join(done))


def _state() -> State:
    from pilotlight.wiring import app

    return app(deployed_settings()).state


def _unreadable(key: str, record: bytes) -> str:
    from pilotlight.tools.cli.records.state_families import read

    try:
        read(key, record)
    except Corrupt as error:
        return str(error)
    return ""


def _is_json(record: bytes) -> bool:
    try:
        msgspec.json.decode(record)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _plain(record: bytes) -> bytes:
    """A record as it reads; one that cannot be read as it is stored."""
    try:
        return plain(record)
    except zlib.error:
        return record


def _line(key: str, record: bytes) -> dict[str, object]:
    # A record with line breaks would end its line.
    if b"\n" not in record and b"\r" not in record and _is_json(record):
        return {"key": key, "value": msgspec.Raw(record)}
    return {"key": key, "raw": base64.b64encode(record).decode()}


def _body(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else read(file)


def _lines(lines: Iterable[bytes], file: str) -> Iterator[Line]:
    """Every line, checked. Raises ``BadInput``, which names the line."""
    from pilotlight.tools.cli.records.state_families import read

    decoder = typed_json.decoder(Line)
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            line = decoder.decode(text)
            read(line.key, line.record)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, Corrupt) as error:
            raise BadInput(f"{file} line {number}: {error}; nothing was written") from None
        yield line


def _as_restored(key: str, record: bytes) -> bytes:
    """A cluster's fence says since when the backup knows nothing: the next look counts what may have been spent."""
    if not key.startswith("fence/"):
        return record
    from msgspec.structs import replace

    from pilotlight.state_schema.lease_records import FENCE

    fence = FENCE.format.read(key, record)
    since = fence.lost_since or fence.at
    return FENCE.format.write(replace(fence, lost_since=since)) if since else record


def _put(state: State, line: Line, *, replace: bool, dry_run: bool) -> Literal["written", "kept"]:
    from pilotlight.tools.cli.records.state_families import table_of

    if dry_run:
        return "kept" if not replace and state.get(line.key) is not None else "written"
    try:
        record = _as_restored(line.key, line.record)
        state.put(line.key, record, if_version=None if replace else ABSENT, ttl_s=table_of(line.key).ttl_s)
    except Conflict:
        return "kept"
    return "written"

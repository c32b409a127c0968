"""``pilotlight audit``: the chain of a cluster's decisions, proved and carried out of the store."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec
import typer

from pilotlight.errors import BadInput
from pilotlight.settings import deployed_settings, objects
from pilotlight.tools.cli.state_option import line_of_records
from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.tools.lint.audit_proof import Anchor, ChainProof
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.wiring import App

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
Cluster = Annotated[str, typer.Option(help="Of which cluster, where there are several.")]

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line of an export at most: far above the largest record that a store takes."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(no_args_is_help=True, help="Prove that no decision's record was changed; carry them out.")
    group.command("verify")(verify)
    group.command("export")(export)
    app.add_typer(group, name="audit")


def verify(
    file: Annotated[str, typer.Argument(help="An export to verify, or - for stdin; without one, the state.")] = "",
    anchor: Annotated[
        list[str] | None, typer.Option(help="COUNT:HEAD as it was told (alert audit-anchor). May be repeated.")
    ] = None,
    against: Annotated[str, typer.Option(help="Another export: the first record that differs is named.")] = "",
    cluster: Cluster = "",
    as_json: AsJson = False,
) -> None:
    """Name the first record of the chain that was edited, cut or moved; exit code 1 where there is one.

    Example: [bold]pilotlight audit verify --anchor 1234:9f86d081...[/bold]
    """
    from pilotlight.tools.lint.audit_proof import hashes
    from pilotlight.tools.lint.audit_proof import verify as walk

    anchors = [_anchor(text) for text in anchor or ()]
    copy = hashes(_lines_of(against)) if against else {}
    if file:
        found, head = walk(_lines_of(file), anchors, copy=copy), list[str]()
    else:
        wired = _wired()
        head = [line_of_records(wired.state)]
        found = _of_state(wired, anchors, copy, cluster)
    typer.echo(msgspec.json.encode(found).decode() if as_json else "\n".join([*head, *_said(found)]))
    if found.tampered is not None:
        raise typer.Exit(1)


def export(
    where: Annotated[str, typer.Argument(help="A file, - for stdout, or gs://BUCKET/FOLDER, s3://BUCKET/FOLDER.")],
    after: Annotated[int, typer.Option(help="Only what comes behind this record.", min=0)] = 0,
    lock_days: Annotated[int, typer.Option(help="In a bucket: nobody can delete it for so long.", min=0)] = 0,
    cluster: Cluster = "",
    as_json: AsJson = False,
) -> None:
    """Write the chain with its records as JSON Lines, and say its count and head. In a bucket: what is new, as one more
    object, with its anchor beside it.

    Example: [bold]pilotlight audit export gs://our-audit/pilotlight --lock-days 365[/bold]
    """
    from pilotlight.tools.lint.audit_proof import lines

    see_writable(None if "://" in where else where)
    wired = _wired()
    head = line_of_records(wired.state)
    if "://" in where:
        return _to_bucket(wired, head, where.rstrip("/"), _cluster(wired, cluster), lock_days, as_json)
    found = list(lines(wired.state, _cluster(wired, cluster), after))
    body = b"".join(line + b"\n" for line in found)
    if where == "-":
        sys.stdout.buffer.write(body)
        return
    try:
        Path(where).write_bytes(body)
    except OSError as error:
        raise BadInput(f"{where}: {error.strerror}; name a file that can be written") from None
    _exported(head, where, found, as_json)


def _to_bucket(wired: "App", head: str, where: str, cluster: str, lock_days: int, as_json: bool) -> None:
    from pilotlight.tools.lint.audit_proof import lines

    bucket, state = objects(wired.settings.environ), wired.state
    there = [_last(uri) for uri, _ in bucket.list_matching(f"{where}/{cluster}/*.jsonl")]
    found = list(lines(state, cluster, max(there, default=0)))
    until = state.now().replace(microsecond=0) + timedelta(days=lock_days) if lock_days else None
    if found:
        from pilotlight.tools.lint.audit_proof import hashes

        of = hashes((found[0], found[-1]))
        first, last = min(of), max(of)
        anchor = Anchor(seq=last, hash=of[last], at=state.now())
        body = b"".join(line + b"\n" for line in found)
        bucket.write(f"{where}/{cluster}/{first:012d}-{last:012d}.jsonl", body, until)
        bucket.write(f"{where}/{cluster}/{last:012d}.anchor.json", msgspec.json.encode(anchor), until)
    _exported(head, where, found, as_json)


def _last(uri: str) -> int:
    """The last place in an object, by its name; nobody else's object is one of ours."""
    text = uri.rpartition("/")[2].removesuffix(".jsonl").rpartition("-")[2]
    return int(text) if text.isdigit() else 0


def _exported(head: str, where: str, found: Sequence[bytes], as_json: bool) -> None:
    from pilotlight.tools.lint.audit_proof import hashes

    seq, head = max(hashes(found[-1:]).items(), default=(0, ""))
    if as_json:
        typer.echo(msgspec.json.encode({"where": where, "records": len(found), "last": seq, "head": head}).decode())
        return
    typer.echo(f"{head}\n{count_of(len(found), 'record')} in {where}" + (f"; anchor {seq}:{head}" if head else ""))


def _of_state(wired: "App", anchors: Sequence[Anchor], copy: dict[int, str], name: str) -> ChainProof:
    from pilotlight.tools.lint.audit_proof import KEPT, lines, strangers
    from pilotlight.tools.lint.audit_proof import verify as walk

    cluster = _cluster(wired, name)
    kept_since = wired.state.now() - KEPT
    found = walk(lines(wired.state, cluster), anchors, kept_since=kept_since, copy=copy)
    if found.tampered is None and (added := strangers(wired.state, cluster)):
        from pilotlight.tools.lint.audit_proof import Tampered

        tampered = Tampered(seq=found.last + 1, how="added", id=added[0], why="it is in the store and in no link")
        found = msgspec.structs.replace(found, tampered=tampered)
    return found


def _said(found: ChainProof) -> Iterator[str]:
    if found.tampered is not None:
        wrong = found.tampered
        kind = "cost" if "/" in wrong.id else "decision"
        name = f"record {wrong.seq}" + (f" ({kind} {wrong.id})" if wrong.id else "")
        yield f"{name} was {wrong.how}: {wrong.why}"
        return
    if not found.last:
        yield "the chain has no record yet: it begins with the next decision"
        return
    count = found.last - found.first + 1
    told, as_written = ("record", "is as it was") if count == 1 else ("records", "are as they were")
    yield f"{count} {told}, from {found.first} to {found.last}, {as_written} written"
    if found.costs:
        yield f"{found.costs} of them say what a node came to: `pilotlight why DECISION` shows them"
    if found.expired:
        yield f"{found.expired} of them are older than the store keeps them: their links hold; an export has them"
    held = f"{count_of(found.anchors, 'anchor')} hold{'s' * (found.anchors == 1)}"
    yield held if found.anchors else "no anchor was given: a cut tail would not show"
    yield f"anchor {found.last}:{found.head}"


def _anchor(text: str) -> Anchor:
    seq, colon, head = text.partition(":")
    if not colon or not seq.isdigit() or len(head) != 64:
        raise BadInput(f"--anchor is {text!r}: use COUNT:HEAD, as `pilotlight audit export` and the alert say it")
    return Anchor(seq=int(seq), hash=head)


def _lines_of(file: str) -> Iterable[bytes]:
    if "://" in file:
        return _bucket_lines(file.rstrip("/"))
    if file == "-":
        return _each_line(sys.stdin.buffer, "stdin")
    return _read(file)


def _bucket_lines(where: str) -> Iterator[bytes]:
    """Every line of a bucket's folder of one cluster, in the objects' order, which is that of their places."""
    bucket = objects(deployed_settings().environ)
    found = sorted(uri for uri, _ in bucket.list_matching(f"{where}/*.jsonl"))
    if not found:
        raise BadInput(f"{where}: no export is there; name the folder with the cluster, as gs://BUCKET/FOLDER/CLUSTER")
    for uri in found:
        yield from bucket.read(uri).splitlines()


def _read(file: str) -> Iterator[bytes]:
    try:
        with open(file, "rb") as opened:
            yield from _each_line(opened, file)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}; name an export of `pilotlight audit export`") from None


def _each_line(opened: BinaryIO, where: str) -> Iterator[bytes]:
    """Every line; one that is longer than any record is refused, for its file may have no end."""
    while line := opened.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise BadInput(f"{where}: a line is longer than any record; name an export of `pilotlight audit export`")
        yield line.rstrip(b"\n")


def _wired() -> "App":
    from pilotlight.wiring import app

    return app(deployed_settings())


def _cluster(wired: "App", name: str) -> str:
    if name and name not in wired.clusters:
        raise BadInput(f"--cluster {name}: is none of ours; name one of {', '.join(wired.clusters)}")
    return name or wired.settings.cluster_name

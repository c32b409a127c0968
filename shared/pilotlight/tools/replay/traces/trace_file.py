"""Trace files: the csv.gz of recorded jobs, read strictly and written byte-reproducibly."""

import csv
import gzip
import heapq
import io
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.settings import read
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import MILLI_PER_GPU, Seconds

COLUMNS = ("job_id", "submit_s", "duration_s", "gpus", "gpu_milli", "gpu_spec", "vc", "priority", "group")
DAY = 86_400.0
LARGEST_NODE = 8
"""GPUs of the largest node: a job of more is a gang of whole nodes of this size."""

_LONGEST = 5 * 366 * DAY
_MOST_GPUS = 20_000
AT_ONCE = 50_000
"""GPUs that jobs of a trace may hold at once for a replay of it to end."""
_GZIP = b"\x1f\x8b"


def read_trace(path: str | Path) -> tuple[Job, ...]:
    """The jobs of a trace file (csv, gzipped or not), by submit time, then in the file's order.

    Raises ``BadInput`` with the file and the line for whatever is not as ``COLUMNS`` and ``Job`` say.
    """
    name = Path(path).name
    rows = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    jobs: list[Job] = []
    seen: set[str] = set()
    try:
        header = next(rows, [])
        if missing := [column for column in COLUMNS if column not in header]:
            raise BadInput(f"{name}: no column {', '.join(missing)}; a trace has {','.join(COLUMNS)}")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise BadInput(f"{name} line {rows.line_num}: {len(row)} fields where the header has {len(header)}")
            job = _job(dict(zip(header, row, strict=True)), f"{name} line {rows.line_num}")
            if job.job_id in seen:
                raise BadInput(f"{name} line {rows.line_num}: job_id {job.job_id!r} is there twice")
            seen.add(job.job_id)
            jobs.append(job)
    except csv.Error as error:
        raise BadInput(f"{name} line {rows.line_num}: not CSV: {error}") from None
    if not jobs:
        raise BadInput(f"{name}: holds no jobs")
    return tuple(sorted(jobs, key=lambda job: job.submit_s))


def read_bounded(path: str | Path) -> tuple[Job, ...]:
    """The same of a trace that a replay can hold. Raises ``BadInput`` for another."""
    jobs = read_trace(path)
    refuse_crowd(jobs, Path(path).name)
    return jobs


def refuse_crowd(jobs: Sequence[Job], name: str) -> None:
    """Raises ``BadInput`` where more GPUs than a replay can hold would be at work at once, each job from its submit."""
    ends: list[tuple[Seconds, int]] = []
    held = 0
    for job in jobs:
        while ends and ends[0][0] <= job.submit_s:
            held -= heapq.heappop(ends)[1]
        held += job.gpus
        heapq.heappush(ends, (job.submit_s + job.duration_s, job.gpus))
        if held > AT_ONCE:
            raise BadInput(
                f"{name}: job {job.job_id} would make {held:,} GPUs at work at once, and a replay holds {AT_ONCE:,}: "
                "drop rows, or replay a part of them"
            )


def read_text(path: str | Path) -> str:
    """A text file, gunzipped when it is gzip. Raises ``BadInput``."""
    path = Path(path)
    raw = read(str(path))
    try:
        if raw.startswith(_GZIP):
            raw = gzip.decompress(raw)
        elif path.suffix == ".gz":
            raise BadInput(f"{path.name}: its name ends in .gz but it is not gzip; name it .csv")
        return raw.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{path.name}: broken or cut off gzip ({error}); fetch it again") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path.name}: not UTF-8 text at byte {error.start}; save it as UTF-8") from None


def _job(row: Mapping[str, str], where: str) -> Job:
    job = Job(
        job_id=row["job_id"],
        submit_s=_number(row, "submit_s", where, least=0, most=_LONGEST),
        duration_s=_number(row, "duration_s", where, least=0, most=_LONGEST),
        gpus=_count(row, "gpus", where, most=_MOST_GPUS),
        gpu_milli=_count(row, "gpu_milli", where, most=MILLI_PER_GPU),
        models=tuple(model for model in row["gpu_spec"].split("|") if model),
        team=row["vc"],
        priority=row["priority"],
        group=row["group"],
    )
    if not job.job_id:
        raise BadInput(f"{where}: job_id is empty")
    if job.gpus > 1 and job.gpu_milli < MILLI_PER_GPU:
        raise BadInput(f"{where}: gpu_milli is {job.gpu_milli} with {job.gpus} gpus: only 1 GPU can be shared")
    return job


def _number(row: Mapping[str, str], key: str, where: str, least: float, most: float) -> Seconds:
    try:
        value = float(row[key])
    except ValueError:
        raise BadInput(f"{where}: {key} is {row[key]!r}: not a number of seconds") from None
    if not (math.isfinite(value) and least <= value <= most):
        raise BadInput(
            f"{where}: {key} is {row[key]!r}: must be from {least:g} to {most:.0f} seconds; mend or drop the row"
        )
    return value


def _count(row: Mapping[str, str], key: str, where: str, most: int) -> int:
    # isdecimal first: int() would also take "1_000", " 4" and "-3".
    text = row[key]
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most):
        raise BadInput(f"{where}: {key} is {text!r}: must be a whole number from 1 to {most}; mend or drop the row")
    return int(text)


def write_trace(jobs: Iterable[Job], path: str | Path) -> None:
    """Write jobs as a trace file, gzipped when its name ends in .gz: equal jobs give equal bytes."""
    path = Path(path)
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(_rows(jobs))
    raw = text.getvalue().encode()
    try:
        path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}; name a file that can be written") from None


def _rows(jobs: Iterable[Job]) -> Iterator[Sequence[object]]:
    yield COLUMNS
    for j in jobs:
        times = (_plain(j.submit_s), _plain(j.duration_s))
        yield (j.job_id, *times, j.gpus, j.gpu_milli, "|".join(j.models), j.team, j.priority, j.group)


def _plain(seconds: Seconds) -> str:
    return str(int(seconds)) if seconds == int(seconds) else repr(float(seconds))


def window(jobs: Iterable[Job], from_day: float, to_day: float) -> tuple[Job, ...]:
    """The jobs submitted on days ``[from_day, to_day)``, their clock started anew; run times stay whole."""
    start, end = from_day * DAY, to_day * DAY
    return tuple(
        msgspec.structs.replace(job, submit_s=job.submit_s - start) for job in jobs if start <= job.submit_s < end
    )


def types_for(job: Job, catalog: Catalog) -> tuple[str, ...]:
    """The instance types a job may run on, in the catalogue's order: its model is allowed and the node is large enough.

    A node needs ``min(gpus, 8)`` GPUs. A job that names no model may use any.
    """
    return tuple(
        name
        for name, offered in catalog.instance_types.items()
        if (not job.models or offered.gpu_model in job.models) and offered.gpus >= min(job.gpus, LARGEST_NODE)
    )

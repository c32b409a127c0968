"""Images that the jobs of a trace pull on new nodes: which, how long they take, and whose they are.

A file is a CSV with a header: ``image`` (its name), ``seconds`` (of a pull on a node that has it not), ``share`` (how
often jobs use it beside the others of their team) and, if wanted, ``team``: rows of a job's team go before those that
name none. Jobs of one group use one image.
"""

import csv
import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from zlib import crc32

import msgspec

from pilotlight.errors import BadInput
from pilotlight.tools.replay.traces.trace_file import read_text
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import HOUR, Seconds

MOST_S: Seconds = 24 * HOUR
MOST_IMAGES = 1000


class ImageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One image, for jobs of one team or, where it names none, of those without rows of their own."""

    image: str
    seconds: Seconds
    share: float
    team: str = ""


def read_images(path: Path) -> tuple[ImageRow, ...]:
    """The rows of a file. Raises ``BadInput`` with the line."""
    try:
        rows = list(csv.reader(read_text(path).splitlines()))
    except csv.Error as error:
        raise BadInput(f"{path}: not CSV: {error}") from None
    header = rows[0] if rows else []
    if header not in (["image", "seconds", "share"], ["image", "seconds", "share", "team"]):
        raise BadInput(f"{path} line 1: write the header image,seconds,share or image,seconds,share,team")
    found = [_row(row, header, f"{path} line {at}") for at, row in enumerate(rows[1:], start=2) if row]
    if not 0 < len(found) <= MOST_IMAGES:
        raise BadInput(f"{path}: has {len(found)} images: give 1 to {MOST_IMAGES}")
    seconds = {one.image: one.seconds for one in found}
    odd = next((one for one in found if seconds[one.image] != one.seconds), None)
    if odd is not None:
        raise BadInput(f"{path}: {odd.image} has two pull times, and an image has one: give both rows the same seconds")
    return tuple(found)


def with_images(jobs: Sequence[Job], images: Sequence[ImageRow], seed: int) -> tuple[Job, ...]:
    """The jobs, each with an image drawn by the shares of its team: the same in every run of a seed."""
    teams = {one.team for one in images}
    by_team = {team: [one for one in images if one.team == team] for team in teams}
    return tuple(
        msgspec.structs.replace(job, image=_drawn(by_team.get(job.team) or by_team.get("", []), job, seed))
        for job in jobs
    )


def _drawn(rows: Sequence[ImageRow], job: Job, seed: int) -> str:
    if not rows:
        return ""
    sums = list(accumulate(one.share for one in rows))
    at = crc32(f"{seed}/{job.team}/{job.group or job.job_id}".encode()) / 2**32 * sums[-1]
    return next((one.image for one, so_far in zip(rows, sums, strict=True) if at < so_far), rows[-1].image)


def _row(row: Sequence[str], header: Sequence[str], where: str) -> ImageRow:
    if len(row) != len(header):
        raise BadInput(f"{where}: {len(row)} fields where the header has {len(header)}")
    if not row[0]:
        raise BadInput(f"{where}: image is empty")
    return ImageRow(
        image=row[0],
        seconds=_number(row[1], "seconds", 0, MOST_S, where),
        share=_number(row[2], "share", 1e-9, 1e9, where),
        team=row[3] if len(row) > 3 else "",
    )


def _number(text: str, key: str, least: float, most: float, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise BadInput(f"{where}: {key} is {text!r}: not a number") from None
    if not (math.isfinite(value) and least <= value <= most):
        raise BadInput(f"{where}: {key} is {text!r}: must be from {least:g} to {most:g}")
    return value

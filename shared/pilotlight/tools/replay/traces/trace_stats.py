"""Statistics of a trace: enough to draw one like it, and nothing that names a job, a person or a team.

What decides how autoscalers fare on a trace is that jobs come in bursts (array jobs, sweeps) whose members run
equally long. So jobs of one shape that follow each other closely are measured burst by burst, for each slot of a
quarter of an hour; the others by shape and order of magnitude of their run time, with the slots they came in.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import HOUR, MILLI_PER_GPU, Seconds

SLOT_S = 900.0
"""Arrivals are counted by slots of this length. Longer ones flatten the peaks of a day."""
BURST_GAP_S = 60.0
"""Jobs of one shape at most this far apart, in one slot, belong to one burst."""
BURST_JOBS = 8
"""Fewer jobs than this are no burst: they are pooled with the rest of their shape."""
_GAP_POINTS, _BURST_POINTS, _REST_POINTS = 5, 9, 9
_MOST_JOBS = 10_000_000


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the statistics file: unknown keys are refused."""


class Quantiles(_Table, frozen=True, kw_only=True):
    """Seconds: the mean, and points of the quantile function at equal steps from the least to the most."""

    mean: Seconds
    points: tuple[Seconds, ...]

    @property
    def sound(self) -> bool:
        """True where there are points, and nothing is negative."""
        return bool(self.points) and min(self.mean, *self.points) >= 0


class Shape(_Table, frozen=True, kw_only=True):
    """Demand of jobs. Teams and groups are numbered by how many jobs they have."""

    gpus: int
    gpu_milli: int = MILLI_PER_GPU
    models: tuple[str, ...] = ()
    team: str = ""
    priority: str = ""
    group: str = ""

    @property
    def sound(self) -> bool:
        """True where a job holds something, and no more of a GPU than there is."""
        return self.gpus >= 1 and 1 <= self.gpu_milli <= MILLI_PER_GPU


class Burst(_Table, frozen=True, kw_only=True):
    """Jobs of one shape in quick succession within one ``slot`` (counted from the start of the trace)."""

    shape: int
    slot: int
    jobs: int
    gap_s: Quantiles
    duration_s: Quantiles

    @property
    def slots(self) -> tuple[tuple[int, int], ...]:
        """Its one slot with its jobs, as ``Rest`` has them."""
        return ((self.slot, self.jobs),)

    @property
    def sound(self) -> bool:
        """True where its times are."""
        return self.gap_s.sound and self.duration_s.sound


class Rest(_Table, frozen=True, kw_only=True):
    """Jobs of one shape and about equal run time outside bursts: how many came in which slot, as (slot, jobs)."""

    shape: int
    slots: tuple[tuple[int, int], ...]
    duration_s: Quantiles

    @property
    def sound(self) -> bool:
        """True where its times are."""
        return self.duration_s.sound


class Stats(_Table, frozen=True, kw_only=True, rename={"source": "from"}):
    """The statistics file. ``source``, ``citation`` and ``licence`` are those of the trace it was measured on."""

    source: str
    citation: str
    licence: str
    slot_s: Seconds
    jobs: int
    gpu_hours: float
    shapes: tuple[Shape, ...]
    bursts: tuple[Burst, ...]
    rest: tuple[Rest, ...]


def measure(jobs: Sequence[Job], source: str, citation: str, licence: str) -> Stats:
    """The statistics of a trace."""
    shapes = _shapes(jobs)
    index = {shape: i for i, shape in enumerate(dict.fromkeys(shapes))}
    by_shape: defaultdict[int, list[Job]] = defaultdict(list)
    for job, shape in zip(jobs, shapes, strict=True):
        by_shape[index[shape]].append(job)
    bursts: list[Burst] = []
    rest: list[Rest] = []
    for i, members in by_shape.items():
        runs = _runs(members)
        bursts += [_burst(i, run) for run in runs if len(run) >= BURST_JOBS]
        others = [job for run in runs if len(run) < BURST_JOBS for job in run]
        rest += [_rest(i, band) for band in _bands(others)]
    return Stats(
        source=source,
        citation=citation,
        licence=licence,
        slot_s=SLOT_S,
        jobs=len(jobs),
        gpu_hours=round(sum(job.gpu_seconds for job in jobs) / HOUR, 3),
        shapes=tuple(index),
        bursts=tuple(bursts),
        rest=tuple(rest),
    )


def _shapes(jobs: Sequence[Job]) -> list[Shape]:
    """Each job's shape, its team and group renamed."""
    teams, groups = _renamed("team", (j.team for j in jobs)), _renamed("group", (j.group for j in jobs))
    return [
        Shape(
            gpus=j.gpus,
            gpu_milli=j.gpu_milli,
            models=j.models,
            team=teams[j.team],
            priority=j.priority,
            group=groups[j.group],
        )
        for j in jobs
    ]


def _renamed(kind: str, names: Iterable[str]) -> Mapping[str, str]:
    counts = Counter(names)
    ranked = sorted((name for name in counts if name), key=lambda name: (-counts[name], name))
    return {"": ""} | {name: f"{kind}-{i}" for i, name in enumerate(ranked, start=1)}


def _runs(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs in order of submit, cut where a slot ends and where one comes over ``BURST_GAP_S`` after the last."""
    runs = [[jobs[0]]]
    for before, job in pairwise(jobs):
        if job.submit_s - before.submit_s > BURST_GAP_S or _slot(job) != _slot(before):
            runs.append([])
        runs[-1].append(job)
    return runs


def _slot(job: Job) -> int:
    return int(job.submit_s // SLOT_S)


def _burst(shape: int, jobs: Sequence[Job]) -> Burst:
    return Burst(
        shape=shape,
        slot=_slot(jobs[0]),
        jobs=len(jobs),
        gap_s=_quantiles([b.submit_s - a.submit_s for a, b in pairwise(jobs)], _GAP_POINTS),
        duration_s=_quantiles([job.duration_s for job in jobs], _BURST_POINTS),
    )


def _bands(jobs: Iterable[Job]) -> list[list[Job]]:
    """Jobs by the order of magnitude (powers of 4) of their run time, the shortest first.

    Few long jobs hold much of the work and decide when a run ends: pooled with the rest they would be smoothed away.
    """
    bands: defaultdict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        bands[int(math.log(max(1.0, job.duration_s), 4))].append(job)
    return [band for _, band in sorted(bands.items())]


def _rest(shape: int, jobs: Sequence[Job]) -> Rest:
    # At least two jobs to a step of the quantile function: a shape of few jobs is not told job by job.
    points = min(_REST_POINTS, len(jobs) // 2 + 1)
    return Rest(
        shape=shape,
        slots=tuple(sorted(Counter(_slot(job) for job in jobs).items())),
        duration_s=_quantiles([job.duration_s for job in jobs], points),
    )


def _quantiles(values: Iterable[Seconds], points: int) -> Quantiles:
    ordered = sorted(values)
    last, steps = len(ordered) - 1, max(1, points - 1)
    mean = round(math.fsum(ordered) / len(ordered), 3)
    return Quantiles(mean=mean, points=tuple(ordered[round(i * last / steps)] for i in range(points)))


def write_stats(stats: Stats) -> bytes:
    """The statistics file: JSON with a line for each burst."""
    fields = [f"{_text(key)}: {_lines(value)}" for key, value in msgspec.to_builtins(stats).items()]
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()


def _lines(value: object) -> str:
    if not isinstance(value, list | tuple):
        return _text(value)
    return "[\n" + ",\n".join(_text(item) for item in value) + "\n]"


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def read_stats(text: str | bytes, where: str) -> Stats:
    """A statistics file. Raises ``BadInput`` that names ``where`` and the place."""
    try:
        stats = typed_json.decode(text, Stats)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{where}: not statistics of a trace: {str(error).replace('`', '')}; write some with pilotlight stats -o"
        ) from None
    if problem := _problem(stats):
        raise BadInput(f"{where}: {problem}")
    return stats


def _problem(stats: Stats) -> str:
    """The first problem that types alone do not rule out, or nothing."""
    parts: tuple[Burst | Rest, ...] = (*stats.bursts, *stats.rest)
    came = [slot for part in parts for slot in part.slots]
    held = sum(jobs for _, jobs in came)
    if not all(0 <= part.shape < len(stats.shapes) for part in parts):
        return "shape: a burst or rest names a shape that shapes does not hold"
    if not all(shape.sound for shape in stats.shapes):
        return "shapes: gpus must be 1 or more and gpu_milli from 1 to 1000"
    if stats.slot_s <= 0 or any(slot < 0 or jobs < 1 for slot, jobs in came):
        return "slot_s, slot and jobs: must not be negative, slot_s and jobs not 0"
    if held != stats.jobs or not 0 < held <= _MOST_JOBS:
        return f"jobs: is {stats.jobs}, but bursts and rest hold {held} (from 1 to {_MOST_JOBS} can be drawn)"
    if not all(part.sound for part in parts):
        return "duration_s and gap_s: must hold points that are not negative"
    return ""

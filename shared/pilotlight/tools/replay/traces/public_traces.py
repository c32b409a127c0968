"""Public traces in their owners' formats -> jobs. Users are left out, jobs renumbered, teams and shapes hashed.

- Philly: ``cluster_job_log`` of github.com/msr-fiddle/philly-traces (M. Jeon et al., USENIX ATC 2019; CC-BY-4.0).
- openb: ``openb_pod_list_*.csv`` of github.com/alibaba/clusterdata, cluster-trace-gpu-v2023 (Q. Weng et al.,
  USENIX ATC 2023; for research or study).
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.tools.replay.traces.trace_file import read_text, types_for
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.units import EPOCH, MILLI_PER_GPU, Seconds

PHILLY_MODELS = ("V100", "A100")
"""Philly names no model: these are the ones of a training cluster."""
OPENB_MODELS = ("T4", "A10G", "V100", "A100")
"""What an openb pod without a constraint may use."""
_OPENB_MODEL = {
    "T4": "T4",
    "A10": "A10G",
    "G2": "A10G",
    "P100": "V100",
    "V100M16": "V100",
    "V100M32": "V100",
    "G3": "A100",
}
_OPENB_COLUMNS = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos")
_OPENB_TIMES = ("creation_time", "scheduled_time", "deletion_time")


class _Attempt(msgspec.Struct):
    start_time: str | None = None
    end_time: str | None = None
    detail: list[dict[str, Any]] = []

    @property
    def gpus(self) -> int:
        return sum(len(machine.get("gpus") or ()) for machine in self.detail)


class _PhillyJob(msgspec.Struct):
    vc: str
    submitted_time: str | None
    attempts: list[_Attempt] = []


def convert_philly(path: str | Path) -> tuple[Job, ...]:
    """The jobs of Philly's job log that ran: GPUs of the largest attempt, run time summed over the attempts.

    Attempts without a start or an end (a logging error, or still running) count for nothing. Times are local to the
    cluster and taken as they stand. Raises ``BadInput``.
    """
    name = Path(path).name
    try:
        logged = typed_json.decode(read_text(path), list[_PhillyJob])
    except msgspec.DecodeError as error:
        raise BadInput(
            f"{name}: not Philly's cluster_job_log: {str(error).replace('`', '')}; name the original"
        ) from None
    jobs = [job for number, entry in enumerate(logged) if (job := _philly(entry, f"{name}: job {number}"))]
    return _renumbered(jobs, name)


def _philly(logged: _PhillyJob, where: str) -> Job | None:
    submit = _moment(logged.submitted_time, where)
    run_s, gpus = 0.0, 0
    for attempt in logged.attempts:
        start, end = _moment(attempt.start_time, where), _moment(attempt.end_time, where)
        if start is not None and end is not None and end > start:
            run_s += end - start
            gpus = max(gpus, attempt.gpus)
    if submit is None or not gpus:
        return None
    return Job(job_id="", submit_s=submit, duration_s=run_s, gpus=gpus, models=PHILLY_MODELS, team=_hashed(logged.vc))


def _moment(text: str | None, where: str) -> Seconds | None:
    if text in (None, "", "None"):
        return None
    try:
        return (datetime.fromisoformat(str(text)).replace(tzinfo=UTC) - EPOCH).total_seconds()
    except ValueError:
        raise BadInput(f"{where}: {text!r} is not a time such as 2017-10-07 01:12:09") from None


def convert_openb(path: str | Path, catalog: Catalog) -> tuple[Job, ...]:
    """The GPU pods of an openb pod list that were scheduled and deleted; their models in ``catalog``'s names.

    A pod whose models no type of the catalogue can hold may use any. Raises ``BadInput``.
    """
    name = Path(path).name
    rows = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        if missing := [column for column in _OPENB_COLUMNS + _OPENB_TIMES if column not in (rows.fieldnames or ())]:
            raise BadInput(f"{name}: no column {', '.join(missing)}: not an openb pod list; name the original")
        jobs = [job for row in rows if (job := _openb(row, catalog, f"{name} line {rows.line_num}"))]
    except csv.Error as error:
        raise BadInput(f"{name} line {rows.line_num}: not CSV: {error}") from None
    return _renumbered(jobs, name)


def _openb(row: Mapping[str, str | None], catalog: Catalog, where: str) -> Job | None:
    gpus = _whole(row, "num_gpu", where)
    created, started, ended = (_whole(row, key, where) for key in _OPENB_TIMES)
    if not gpus or created is None or started is None or ended is None or ended <= started:
        return None
    milli = _whole(row, "gpu_milli", where) or MILLI_PER_GPU
    if milli > MILLI_PER_GPU:
        raise BadInput(f"{where}: gpu_milli is {milli}: must be at most {MILLI_PER_GPU}")
    job = Job(
        job_id="",
        submit_s=created,
        duration_s=ended - started,
        gpus=gpus,
        gpu_milli=milli if gpus == 1 else MILLI_PER_GPU,
        models=_openb_models(row["gpu_spec"] or ""),
        priority=row["qos"] or "",
        group=_hashed("/".join(row[key] or "" for key in _OPENB_COLUMNS)),
    )
    return job if types_for(job, catalog) else msgspec.structs.replace(job, models=OPENB_MODELS)


def _openb_models(spec: str) -> tuple[str, ...]:
    named = {_OPENB_MODEL[model] for model in spec.split("|") if model in _OPENB_MODEL}
    return tuple(model for model in OPENB_MODELS if model in named) or OPENB_MODELS


def _whole(row: Mapping[str, str | None], key: str, where: str) -> int | None:
    """A count or a time in seconds, None where it is empty."""
    text = row[key] or ""
    if text in ("", "nan"):
        return None
    try:
        value = float(text)
        if value < 0 or value != int(value):
            raise ValueError
    except (ValueError, OverflowError):
        raise BadInput(f"{where}: {key} is {text!r}: must be a whole number") from None
    return int(value)


def _hashed(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=3).hexdigest()


def _renumbered(jobs: Iterable[Job], where: str) -> tuple[Job, ...]:
    """Jobs by submit, the clock started at the first one, with ids that say nothing."""
    ordered = sorted(jobs, key=lambda job: job.submit_s)
    if not ordered:
        raise BadInput(f"{where}: holds no job that ran on a GPU")
    start = ordered[0].submit_s
    return tuple(
        msgspec.structs.replace(job, job_id=f"j{i:06d}", submit_s=job.submit_s - start) for i, job in enumerate(ordered)
    )

"""GPU telemetry from a Prometheus API that has dcgm-exporter's series (names of its 4.8 default counters).

Activity of a GPU is the profiling metric (a ratio) where it has one, else its utilisation (percent). Under the
Prometheus Operator the workload's labels become ``exported_pod`` and ``exported_namespace``. An unsupported field is
shown as a number near 2**63; such values, negative ones and those over their scale are no measurements. A sample is
asked for by ``last_over_time`` of one step: Prometheus would show the last value for five minutes more, which nobody
measured. At the grid's end the last value counts for three scrapes: one that is late is no GPU that is gone.
"""

from collections.abc import Mapping
from math import isfinite, nan

from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.errors import BadInput
from pilotlight.facts.utilisation.telemetry import PAST_S, GpuSeries, Telemetry
from pilotlight.units import HOUR, Seconds, count_of

ACTIVITY = (("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1.0), ("DCGM_FI_DEV_GPU_UTIL", 100.0))
USED = "DCGM_FI_DEV_FB_USED"
MOST_MIB = 1e8
ROUNDED = 1.01
"""A share of 1 is seldom told as more, by rounding: such a value is no measurement; one above is a percent."""
NO_FIGURE = "no value is a measurement"
LATE = 3
"""Scrapes for which the last value counts at the grid's end."""
MOST_STEPS = 10_000
"""Prometheus gives 11,000 points a series at most: longer spans are asked for in parts."""

Key = tuple[str, str]
Rows = dict[Key, list[float]]


class Named:
    """Labels of the series of one look: containers, and the UUIDs of GPUs by host and number."""

    def __init__(self) -> None:
        self.containers: dict[Key, str] = {}
        self.uuids: dict[str, set[str]] = {}

    def take(self, key: Key, labels: Mapping[str, str]) -> None:
        """Keep what a series' labels tell."""
        self.containers[key] = labels.get("exported_container") or labels.get("container", "")
        if (uuid := labels.get("UUID")) and (place := _place(labels)) and not place.startswith("/"):
            self.uuids.setdefault(place, set()).add(uuid)

    def by_uuid(self, rows: Rows) -> Rows:
        """The rows by UUID, where another exporter tells it: a GPU that two name otherwise is one."""
        found: Rows = {}
        for (pod, device), row in rows.items():
            place = "/".join(device.split("/", 2)[:2])
            named = list(self.uuids.get(place, ()))
            key = pod, named[0] + device[len(place) :] if len(named) == 1 else device
            beside = found.get(key)
            found[key] = (
                row if beside is None else [a if a >= b or b != b else b for a, b in zip(beside, row, strict=True)]
            )
        return found


class PrometheusTelemetry:
    """Telemetry of one Prometheus API."""

    def __init__(self, api: PrometheusApi) -> None:
        self._api = api

    def read(self, start_s: float, end_s: float, step_s: Seconds) -> Telemetry:
        """Every pod's use of GPUs on one grid. Without any series telemetry is absent. Raises ``Unavailable``."""
        seen = Named()
        rows, metrics = self._activity(start_s, end_s, step_s, seen, "last")
        _carry(rows)
        used = self.rows(USED, start_s, end_s, step_s, 1.0, MOST_MIB, seen) if rows else {}
        nothing = [nan] * (int((end_s - start_s) / step_s) + 1)
        series = tuple(
            GpuSeries(
                pod=pod,
                device=device,
                container=seen.containers.get((pod, device), ""),
                part=_is_part(device),
                activity=activity,
                memory=used.get((pod, device), nothing),
            )
            for (pod, device), activity in sorted(rows.items())
        )
        return Telemetry(start_s=start_s, step_s=step_s, metric=" and ".join(metrics), series=series)

    def past(self, end_s: float) -> Telemetry:
        """By the hour. A Prometheus that keeps less has less of it."""
        start_s = end_s - PAST_S + HOUR
        rows, metrics = self._activity(start_s, end_s, HOUR, Named(), "max")
        series = (GpuSeries(pod=pod, device=device, activity=row, memory=()) for (pod, device), row in rows.items())
        return Telemetry(start_s=start_s, step_s=HOUR, metric=" and ".join(metrics), series=tuple(series))

    def _activity(
        self, start_s: float, end_s: float, step_s: Seconds, seen: Named, of_step: str
    ) -> tuple[Rows, list[str]]:
        """Each device's, by the best metric that it has at the time, and the metrics that were read."""
        rows, metrics, odd, empty = Rows(), list[str](), dict[Key, str](), set[Key]()
        read = [self.rows(name, start_s, end_s, step_s, s, 100 / s, seen, of_step) for name, s in ACTIVITY]
        for (name, scale), found in zip(ACTIVITY, map(seen.by_uuid, read), strict=True):
            _look_at_scale(name, scale, found)
            scaled = _of_another_scale(name, scale, found)
            odd = scaled | odd
            empty |= {key for key, row in found.items() if not _as_told(scale, row)}
            more = _news(rows, scale, {key: row for key, row in found.items() if key not in scaled})
            metrics += [name] if more else []
            rows |= more
        there = _there(rows)
        odd = {key: why for key, why in odd.items() if key not in there}
        told = _told(dict.fromkeys(empty - there, NO_FIGURE) | odd)
        if odd and not rows:
            raise BadInput(f"telemetry: nothing is known: {told}")
        return rows, [*metrics[:-1], f"{metrics[-1]} (without {told})"] if told and rows else metrics

    def rows(
        self,
        query: str,
        start_s: float,
        end_s: float,
        step_s: Seconds,
        scale: float,
        most: float,
        seen: Named,
        of_step: str = "last",
    ) -> Rows:
        """A pod and device's values; of doubled series the larger counts: who works is never called idle."""
        count = int((end_s - start_s) / step_s) + 1
        span = f"{max(2, round(step_s * 1000)) - 1}ms"  # Before its version 3 both ends belong to a span.
        rows: Rows = {}
        for first in range(0, count, MOST_STEPS):
            last = min(count, first + MOST_STEPS) - 1
            asked = self._api.matrix(
                f"{of_step}_over_time({query}[{span}])", start_s + first * step_s, start_s + last * step_s, step_s
            )
            for labels, values in asked:
                key = _key(labels)
                if key is None:
                    continue
                row = rows.setdefault(key, [nan] * count)
                seen.take(key, labels)
                for at, text in values:
                    n, value = round((at - start_s) / step_s), _number(text) / scale
                    if 0 <= n < count and 0 <= value <= most and not row[n] >= value:
                        row[n] = value
        return seen.by_uuid(rows)


def _there(rows: Rows) -> set[Key]:
    """Devices that are read, and those of which slices are."""
    return {*rows, *((pod, device.rpartition("/")[0]) for pod, device in rows)}


def _filled(better: list[float] | None, row: list[float]) -> list[float]:
    """What the better metric tells, and the row's where it tells nothing."""
    return row if better is None else [b if b == b else r for b, r in zip(better, row, strict=True)]


def _look_at_scale(name: str, scale: float, rows: Rows) -> None:
    """Raises ``BadInput`` where percents of all GPUs are shares of 1: each would be read as a hundredth of itself."""
    values = [value for row in rows.values() for value in _as_told(scale, row)]
    if scale > 1 and values and max(values) <= 1 and any(0 < value < 1 for value in values):
        raise BadInput(f"telemetry: {name} is in percent, and no value is above 1: let what writes it multiply by 100")


def _news(rows: Rows, scale: float, found: Rows) -> Rows:
    """Rows of a metric that no better one has told: of devices that none has, and of times that it left out."""
    there = _there(rows)
    told = {key: row for key, row in found.items() if _as_told(scale, row) and (key in rows or key not in there)}
    return {key: whole for key, row in told.items() if (whole := _filled(rows.get(key), row)) != rows.get(key)}


def _of_another_scale(name: str, scale: float, rows: Rows) -> dict[Key, str]:
    """Devices that a metric tells by another scale than its own, and why they are not read."""
    if scale > 1:
        why = f"{name} may be in shares of 1, not in percent: let what writes it multiply by 100"
        return dict.fromkeys(_shares_beside_percents(scale, rows), why)
    why = f"{name} is in percent, not in shares of 1: let what writes it divide by 100"
    odd = {key: why for key, row in rows.items() if any(value > ROUNDED for value in row)}
    for row in rows.values():
        row[:] = [value if value <= 1 else nan for value in row]
    return odd


def _shares_beside_percents(scale: float, rows: Rows) -> set[Key]:
    """Devices that may be told in shares of 1 beside others' percents: who works at 0.9 would be read as who does
    nothing. A mean of percents may be 0.4 as well: nobody can tell, so it is not measured.
    """
    told = {key: max(values) for key, row in rows.items() if (values := _as_told(scale, row))}
    if max(told.values(), default=0) <= 1:
        return set()
    if not any(value % 1 for key, most in told.items() if most <= 1 for value in _as_told(scale, rows[key])):
        return set()
    return {key for key, most in told.items() if 0 < most <= 1}


def _told(unread: Mapping[Key, str]) -> str:
    """Devices that are not read, by why, with a pod of each; empty where all are."""
    by_why: dict[str, list[Key]] = {}
    for key, why in sorted(unread.items()):
        by_why.setdefault(why, []).append(key)
    return "; ".join(
        f"{count_of(len(keys), 'GPU')}, as of {keys[0][0]}, of which {why}" for why, keys in by_why.items()
    )


def _as_told(scale: float, row: list[float]) -> list[float]:
    return [round(value * scale, 9) for value in row if value == value]


def _carry(rows: Rows) -> None:
    """Let the last values count for ``LATE`` scrapes, where no other pod has the device since."""
    last = {key: max(n for n, value in enumerate(row) if value == value) for key, row in rows.items()}
    newest: dict[str, int] = {}
    for (_, device), n in last.items():
        newest[device] = max(newest.get(device, 0), n)
    for key, row in rows.items():
        n = last[key]
        known = sum(value == value for value in row)
        scrape = (n - next(m for m, value in enumerate(row) if value == value)) / (known - 1) if known > 1 else 1
        if n == newest[key[1]] and len(row) - 1 - n <= LATE * max(1, scrape):
            row[n + 1 :] = [row[n]] * (len(row) - 1 - n)


def _key(labels: Mapping[str, str]) -> Key | None:
    """The pod and its device; None for a device that no pod holds."""
    pod = labels.get("exported_pod") or labels.get("pod", "")
    space = labels.get("exported_namespace") or labels.get("namespace", "")
    if not pod or ("exported_pod" in labels and not labels["exported_pod"]):
        return None
    device = labels.get("UUID") or _place(labels)
    shared = labels.get("vgpu", "")
    part = labels.get("GPU_I_ID", "") or (f"vgpu{shared}" if shared else "")
    return f"{space}/{pod}", f"{device}/{part}" if part else device


def _place(labels: Mapping[str, str]) -> str:
    """A device by its host and number."""
    return f"{labels.get('Hostname') or labels.get('hostname', '')}/{labels.get('gpu', '')}"


def _is_part(device: str) -> bool:
    """True where ``_key`` added a part: to a UUID, or to a host and a number."""
    return device.count("/") > (0 if device.startswith(("GPU-", "MIG-")) else 1)


def _number(text: str) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError):
        return nan
    return value if isfinite(value) else nan

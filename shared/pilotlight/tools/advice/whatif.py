"""The articles' worked examples, each as a function of its inputs. Figures that are printed wrong are named as printed.

Every case takes its inputs by name (dollars, hours, shares) and gives figures in the order in which they are read.
"""

from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Literal, NamedTuple

import msgspec

from pilotlight import typed_json
from pilotlight.decide.offers.spot_economics import best_interval_h, expected_h, stretch
from pilotlight.errors import BadInput
from pilotlight.units import Usd, UsdPerHour

Inputs = Mapping[str, Decimal]
Unit = Literal["usd", "usd/h", "share", "h", "min", "times", "gpus", "gpu-h"]

SIXTY = Decimal(60)


class Figure(NamedTuple):
    """One result: what it is, its value, and how it came about. ``printed``: an article's own, and not right."""

    name: str
    value: Decimal
    unit: Unit
    how: str = ""
    printed: bool = False


def _usd(name: str, value: Decimal, how: str = "") -> Figure:
    return Figure(name, value, "usd", how)


def _share(name: str, value: Decimal, how: str = "") -> Figure:
    return Figure(name, value, "share", how)


def scale_to_zero(i: Inputs) -> list[Figure]:
    """Always on, ten hours a day, ten hours a day on spot; and once more with one month for both."""
    hours, day = i["days"] * i["hours_a_day"], i["hours_a_month"] * i["hours_a_day"] / 24
    per_hour, spot = i["usd_per_hour"] * i["nodes"], i["spot_usd_per_hour"] * i["nodes"]
    always, lit, on_spot = per_hour * i["hours_a_month"], per_hour * hours, spot * hours
    return [
        _usd("always on", always, f"{i['hours_a_month']} h a month"),
        _usd("lit by the day", lit, f"{i['days']} days of {i['hours_a_day']} h"),
        _usd("lit by the day on spot", on_spot),
        _usd("saved by the day", always - lit),
        _share("saved by the day, of all", 1 - lit / always),
        _usd("saved on spot", always - on_spot),
        _share("saved on spot, of all", 1 - on_spot / always),
        _usd("lit by the day, same month", per_hour * day, f"{day:.1f} h of {i['hours_a_month']} h, as above"),
        _usd("lit by the day on spot, same month", spot * day),
    ]


def keda(i: Inputs) -> list[Figure]:
    """A node that is always on, a pool at zero, and what a tail of boot and idling adds to each session."""
    month, hours = i["days"] * 24, i["days"] * i["hours_a_day"]
    always, base = i["always_usd_per_hour"] * month, i["cpu_usd_per_hour"] * month
    at_zero = base + i["gpu_usd_per_hour"] * hours
    tail = i["tail_minutes"] / SIXTY * i["days"] * i["gpu_usd_per_hour"]
    return [
        _usd("always on", always, f"{month} h"),
        _usd("scaled to zero", at_zero, f"{hours} GPU-hours on spot, and the small node"),
        Figure("always on over scaled to zero", always / at_zero, "times"),
        _usd("with one node kept", base + i["gpu_usd_per_hour"] * month, "a minimum of one, as one sentence has it"),
        _usd("with the tail, 1 session a day", at_zero + tail, f"{i['tail_minutes']} min of boot and idling each"),
        _usd(f"with the tail, {i['sessions_a_day']} sessions a day", at_zero + tail * i["sessions_a_day"]),
        _usd("with the tail, 12 sessions a day", at_zero + tail * 12),
        _usd("scaled to zero, on demand", base + i["always_usd_per_hour"] * hours),
    ]


def mig(i: Inputs) -> list[Figure]:
    """A GPU a service against a slice a service, at the article's price and at its own machine's."""
    gpus = (i["services"] / i["slices_per_gpu"]).to_integral_value(ROUND_CEILING)
    fewer = i["services"] - gpus
    saved, other = fewer * i["usd_per_gpu_hour"], fewer * i["other_usd_per_gpu_hour"]
    return [
        Figure("GPUs needed", gpus, "gpus", f"{i['services']} services, {i['slices_per_gpu']} to a GPU"),
        Figure("saved an hour", saved, "usd/h", f"{fewer} GPUs at ${i['usd_per_gpu_hour']}"),
        _usd("saved a month", saved * i["hours_a_month"], f"{i['hours_a_month']} h"),
        Figure("saved an hour at the machine's price", other, "usd/h", f"${i['other_usd_per_gpu_hour']} a GPU-hour"),
        _usd("saved a month at the machine's price", other * i["hours_a_month"]),
    ]


def commitment(i: Inputs) -> list[Figure]:
    """From which use on a commitment is cheaper than paying by the hour, and what it saves when always on."""
    price, year = i["usd_per_hour"], i["hours_a_year"] * i["nodes"]
    one, three = i["one_year_usd_per_hour"], i["three_year_usd_per_hour"]
    return [
        _share("break-even use, one year", one / price, "below it, on-demand is cheaper"),
        _share("break-even use, three years", three / price),
        _share("spot, of on-demand", i["spot_share"], "beats both for what may be interrupted"),
        _share("discount, one year", 1 - one / price),
        _share("discount, three years", 1 - three / price),
        _usd("a year on demand", price * year, f"{i['nodes']} nodes"),
        _usd("a year, committed for one", one * year),
        _usd("a year, committed for three", three * year),
        _usd("saved, committed for one", (price - one) * year),
        _usd("saved, committed for three", (price - three) * year),
    ]


def spot(i: Inputs) -> list[Figure]:
    """Savings of spot when an interruption costs half an interval of work; with restarts; by Daly's model."""
    price, cheap, between = i["usd_per_hour"], i["spot_usd_per_hour"], i["hours_between"]
    lost_h, restart_h = i["checkpoint_every_minutes"] / 2 / SIXTY, i["restart_minutes"] / SIXTY
    case, restarted = spot_case(price, cheap, between, lost_h), spot_case(price, cheap, between, lost_h, restart_h)
    rate, every = float(1 / between), float(i["checkpoint_every_minutes"] / SIXTY)
    factor = Decimal(repr(stretch(rate, every, float(i["checkpoint_minutes"] / SIXTY), float(restart_h))))
    useful = cheap * factor

    def best(minutes: Decimal) -> Decimal:
        return Decimal(repr(best_interval_h(rate, float(minutes / SIXTY)))) * SIXTY

    alone = Decimal(repr(expected_h(float(i["run_hours"]), rate)))
    printed = spot_case_as_printed()
    return [
        _usd("saved against on-demand", case.saved, f"{between} h of one node"),
        _usd("work lost", case.lost, "half the time between checkpoints"),
        _usd("net saving", case.net),
        _share("kept of the saving", case.kept_share),
        _share("kept, with a restart", restarted.kept_share, f"{i['restart_minutes']} min"),
        Figure("hours paid for each useful one", factor, "times", "Daly"),
        Figure("a useful hour on spot", useful, "usd/h", "Daly"),
        _share("kept, by the useful hour", (price - useful) / (price - cheap)),
        Figure("best checkpoint interval", best(i["checkpoint_minutes"]), "min", "Young"),
        Figure("best interval for a long checkpoint", best(i["long_checkpoint_minutes"]), "min", "Young"),
        Figure("expected hours without checkpoints", alone, "h", f"{i['run_hours']} h of work: refused"),
        Figure("net saving as printed", printed.net, "usd", "8-GPU nodes counted as GPUs", printed=True),
        Figure("kept as printed", printed.kept_share, "share", "8-GPU nodes counted as GPUs", printed=True),
    ]


def waste(i: Inputs) -> list[Figure]:
    """The waste is the sum of its parts."""
    parts = [(i[f"{name}_usd"], i[f"{name}_waste"]) for name in ("training", "serving", "notebooks")]
    total = sum((usd for usd, _ in parts), Decimal(0))
    lost = sum((usd * share for usd, share in parts), Decimal(0))
    return [_usd("bill", total), _usd("waste", lost, "sum of the parts"), _share("effective", 1 - lost / total)]


def year(i: Inputs) -> list[Figure]:
    """Always on for a year."""
    hours = i["hours_a_year"]
    return [
        _usd("p5.48xlarge", i["p5_usd_per_hour"] * hours),
        _usd("p4d.24xlarge", i["p4d_usd_per_hour"] * hours),
        _usd("a3-megagpu-8g", i["a3mega_usd_per_hour"] * hours),
        _usd(f"{i['nodes']} nodes of p5.48xlarge", i["p5_usd_per_hour"] * hours * i["nodes"]),
    ]


def idle(i: Inputs) -> list[Figure]:
    """GPUs that are held and not used. Memory held is no proof of idling: see what the GPU computes too."""
    per_hour = (i["reserved"] - i["used"]) / i["reserved"] * i["usd_per_hour"]
    return [Figure("idle", per_hour, "usd/h", "of memory reserved"), _usd("idle a day", per_hour * 24)]


def chargeback(i: Inputs) -> list[Figure]:
    """By use the bill is not recovered, and whoever uses less pays less; by allocation it is."""
    teams = [(i[f"{name}_usd"], i[f"{name}_used"]) for name in ("one", "two", "three")]
    total = sum((usd for usd, _ in teams), Decimal(0))
    billed = [usd * used for usd, used in teams]
    names = ("first", "second", "third")
    return [
        *(_usd(f"{name} team, by allocation", usd) for name, (usd, _) in zip(names, teams, strict=True)),
        _usd("recovered by allocation", total),
        *(_usd(f"{name} team, by use", usd) for name, usd in zip(names, billed, strict=True)),
        _usd("recovered by use", sum(billed, Decimal(0))),
        _usd("not recovered by use", total - sum(billed, Decimal(0))),
    ]


def month(i: Inputs) -> list[Figure]:
    """Three lines that add up, and idle hours at a rate that is named."""
    lines = [(i[f"{k}_hours"], i[f"{k}_usd_per_hour"]) for k in ("on_demand", "spot", "small_spot")]
    hours = sum((h for h, _ in lines), Decimal(0))
    total = sum((h * usd for h, usd in lines), Decimal(0))
    return [
        *(_usd(f"{h} h at ${usd}", h * usd) for h, usd in lines),
        _usd("total", total),
        Figure("hours", hours, "gpu-h"),
        _share("idle", i["idle_hours"] / hours),
        _share("efficiency", 1 - i["idle_hours"] / hours),
        _share("spot", (i["spot_hours"] + i["small_spot_hours"]) / hours),
        _usd("idle at the spot rate", i["idle_hours"] * i["spot_usd_per_hour"], f"${i['spot_usd_per_hour']}"),
        _usd("idle at the blended rate", i["idle_hours"] * total / hours, f"${total / hours:.4f}"),
    ]


def unit(i: Inputs) -> list[Figure]:
    """Dollars for a unit of work."""
    price = i["usd_per_gpu_hour"]
    return [
        _usd("an epoch", i["epoch_gpus"] * i["epoch_hours"] * price),
        _usd("a thousand requests", i["requests_gpu_hours"] * price),
        _usd("an experiment", i["experiment_gpus"] * i["experiment_hours"] * price),
        Figure("idling", i["idle_gpus"] * price, "usd/h"),
        _usd("a week of a team's GPUs", i["week_gpus"] * i["hours_a_week"] * price),
    ]


def off_hours(i: Inputs) -> list[Figure]:
    """Nodes that are put out outside working hours; the article counts an hour more than its own schedule has."""
    off = 24 - (i["until_hour"] - i["from_hour"])
    fewer, to_least = i["gpus"] - i["kept_gpus"], i["gpus"] - i["cron_gpus"]
    month = off * i["days"] * i["usd_per_gpu_hour"]
    return [
        Figure("hours off a day", off, "h", f"all but {i['from_hour']} to {i['until_hour']} o'clock"),
        _usd("saved a month", fewer * month, f"{i['gpus']} GPUs to {i['kept_gpus']}"),
        _usd("saved a month, by the schedule's comment", to_least * month, f"{i['gpus']} GPUs to {i['cron_gpus']}"),
        _usd("saved a month at the machine's price", fewer * off * i["days"] * i["other_usd_per_gpu_hour"]),
        Figure(
            "saved a month as printed", fewer * i["printed_hours"] * i["days"] * i["usd_per_gpu_hour"], "usd",
            f"{i['printed_hours']} hours off, which the schedule does not have", printed=True,
        ),
    ]  # fmt: skip


CASES: Mapping[str, Callable[[Inputs], list[Figure]]] = {
    "scale-to-zero": scale_to_zero,
    "keda": keda,
    "mig": mig,
    "commitment": commitment,
    "spot": spot,
    "off-hours": off_hours,
    "waste": waste,
    "year": year,
    "idle": idle,
    "chargeback": chargeback,
    "month": month,
    "unit": unit,
}
"""The cases by the names under which ``data/whatif`` has their inputs."""


class SpotCase(NamedTuple):
    """Dollars over one interval between interruptions: the work lost, and what spot saves against on-demand."""

    lost: Usd
    saved: Usd

    @property
    def net(self) -> Usd:
        """The saving less the loss."""
        return self.saved - self.lost

    @property
    def kept_share(self) -> Decimal:
        """The share of the saving that is kept."""
        return self.net / self.saved


def spot_case(
    on_demand: UsdPerHour, spot: UsdPerHour, between_h: Decimal, lost_h: Decimal, restart_h: Decimal = Decimal(0)
) -> SpotCase:
    """One node, one interruption after ``between_h``: the work since the last checkpoint and the restart are lost.

    ``lost_h`` is half the checkpoint interval. With $32.77 and $12.50, 4 h and 15 min it keeps 96.15 % of the saving.
    """
    return SpotCase(lost=spot * (lost_h + restart_h), saved=(on_demand - spot) * between_h)


def spot_case_as_printed() -> SpotCase:
    """The course module's case as printed: 99.5 % kept. Its units are wrong; nothing of ours is worked out by it.

    The saving is that of 8 nodes ($32.77 and $12.50 are per 8-GPU node, multiplied by "8 A100" again), the lost work
    that of 2 GPUs at $1.56 for a quarter of an hour, rounded.
    """
    return SpotCase(lost=Decimal("3.12"), saved=(Decimal("32.77") - Decimal("12.50")) * 8 * 4)


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A worked example: what it is about, where its figures come from, and the figures."""

    title: str
    source: str
    inputs: dict[str, Decimal]


def read_cases(text: bytes, where: str) -> dict[str, Case]:
    """The cases in ``text``; ``where`` is what errors call it. Raises ``BadInput``."""
    import yaml

    from pilotlight.codec.bounded_yaml import load

    try:
        # Only strings come out of the base loader, so that no figure passes through a binary float.
        return typed_json.convert(load(text), dict[str, Case], strict=False)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{where}: not YAML: {error}") from None
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {error}") from None

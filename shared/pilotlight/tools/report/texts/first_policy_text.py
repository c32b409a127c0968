"""A first policy as the file that a person goes on with: what was found, and beside it what may be written."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec
import yaml

from pilotlight.facts.policy import DEFAULT_CLASSES
from pilotlight.facts.workload import WorkloadClass
from pilotlight.tools.install.first_policy import FirstPolicy, FoundPool, UnknownType

CLASSES: tuple[WorkloadClass, ...] = ("training", "serving", "notebook", "batch")


def policy_text(found: FirstPolicy, source: str, usd: Decimal | None = None, mode: str = "") -> str:
    """The YAML of it. ``source`` says what was looked at; ``usd`` are dollars a month, ``mode`` is what may be done."""
    return "\n".join(_lines(found, source, usd, mode)) + "\n"


def _lines(found: FirstPolicy, source: str, usd: Decimal | None, mode: str) -> Iterator[str]:
    yield f"# Pilotlight's policy, begun by `pilotlight init` from {_plain(source)}."
    yield "# `pilotlight check FILE` says what is wrong with it; `pilotlight schema` prints its schema, for editors."
    yield from (f"# Assumed: {_plain(line)}." for line in found.assumed)
    yield "version: 1"
    yield ""
    yield "# What an hour of one job's waiting is worth in dollars; left out: nothing."
    yield "# value_of_wait: 30"
    yield ""
    yield "# Node pools that may be lit. Labels and taints are what nodes are born with: a pool at zero shows none."
    yield "# More may be said: zones, min, spares, idle_timeout, daemonsets; mode: observe | advise | scale-up | act."
    yield "pools:" if found.pools else "pools: {}"
    for pool in found.pools:
        yield from _pool(pool, mode)
    yield ""
    yield from _classes(found, hard=usd is not None)
    yield ""
    yield from _money(found, usd)


def _pool(found: FoundPool, mode: str) -> Iterator[str]:
    pool = found.pool
    price = f"${found.usd_per_hour}/h {pool.capacity_type}" if found.usd_per_hour is not None else "no price is known"
    yield f"  {_flow(found.name)}:  # {_plain(found.seen)}; {price}"
    named: list[tuple[str, Any, Any]] = [
        ("cloud", pool.cloud, None),
        ("cluster_pool", pool.cluster_pool, ""),
        ("instance_type", pool.instance_type, None),
        ("capacity_type", pool.capacity_type, "on-demand"),
        ("labels", pool.labels, {}),
        ("taints", [_taint(taint) for taint in pool.taints], []),
        ("max", pool.max, None),
        ("mode", mode, ""),
    ]
    yield from (f"    {key}: {_flow(value)}" for key, value, usual in named if value != usual)


def _taint(taint: Any) -> dict[str, str]:
    return {key: value for key, value in msgspec.structs.asdict(taint).items() if value}


def _classes(found: FirstPolicy, *, hard: bool) -> Iterator[str]:
    yield "# Rules by class of work. gpu_models: any is the cheapest that fits, for pods that name no GPU; or a list."
    yield "classes:"
    for name in CLASSES:
        kinds = [kind for kind in found.capacity_types if kind != "spot" or name == "batch"]
        allowed = f", capacity_types: {_flow(kinds)}" if kinds not in ([], ["on-demand"]) else ""
        ends = ", may_move: [hard-cap]" if name == ENDLESS else f", max_runtime: {_RUNS[name]}"
        ends = ends if hard else ""
        yield f"  {name}: {{gpu_models: any{allowed}{ends}}}"


ENDLESS: WorkloadClass = "serving"
"""Gets no end: only a budget that has no room left stops it."""

_RUNS = {name: f"{int(rules.longest_run_s // 86_400)}d" for name, rules in DEFAULT_CLASSES.items()}
"""The longest run that is held for by default: under a hard budget it is written, as consent to end there."""


def runs_assumed() -> tuple[str, ...]:
    """How classes end under a budget, for the list of what was assumed."""
    runs = ", ".join(f"{name} {run}" for name, run in _RUNS.items() if name != ENDLESS)
    return (
        f"longest runs, which the budget holds and where pods end: {runs}",
        "serving ends only where the budget has no room left, in order and told before (may_move: [hard-cap]); "
        "hard: false for the budget never stops it, and tells you alone",
    )


def _money(found: FirstPolicy, budget: Decimal | None) -> Iterator[str]:
    usd = found.most_usd_per_hour
    yield "# What may be lit at once, over all pools. No plan goes over it."
    yield f"caps: {{nodes: {found.most_nodes}{f', usd_per_hour: {usd}' if usd else ''}}}"
    yield ""
    yield "# What may be spent: held before a node is bought. As:"
    yield "#   - {name: research, scope: {team: research}, usd: 400, period: day}"
    yield f"budgets: [{{name: month, usd: {budget:f}, period: month}}]" if budget is not None else "budgets: []"
    yield ""
    yield "# Where alerts go. As: {ops: {kind: slack, url_env: SLACK_URL}}"
    yield "alerts:"
    yield "  channels: {console: {kind: console}}"
    yield ""
    yield "# Prices are those of the built-in catalogue, which are lists' and have dates. Yours go before them:"
    yield "prices:"
    yield "  max_age_days: 180"
    unknown = {one.instance_type for one in found.unknown}
    priced = (one for one in found.pools if one.pool.instance_type not in unknown)
    kinds = list(dict.fromkeys((one.pool.instance_type, one.pool.capacity_type, one.usd_per_hour) for one in priced))
    yield "  # overrides:" if kinds else "  # overrides: {g4dn.xlarge/on-demand: 0.60}"
    for name, kind, known in kinds:
        yield f"  #   {_plain(name)}/{kind}: {known or 'DOLLARS  # An hour, of the price list of your cloud.'}"
    if found.unknown:
        yield from _price_file(found.unknown)


def _price_file(unknown: Sequence[UnknownType]) -> Iterator[str]:
    """How a price file of types that no list has is written, and named."""
    yield f"  # No price list has {_plain(', '.join(one.instance_type for one in unknown))}: none of it is bought."
    yield "  # Write prices.yaml beside this file, with your words in place of the capitals, and take this line in:"
    yield "  # files: [prices.yaml]"
    yield "  # prices.yaml, by the price list of your cloud, in dollars an hour:"
    yield "  #   name: mine"
    yield "  #   as_of: DAYT00:00:00Z"
    yield "  #   instance_types:"
    for one in unknown:
        price = f"{one.capacity_type}: {{usd_per_hour: DOLLARS, source: WHERE, date: DAY}}"
        machine = (
            f"gpu_model: {_flow(one.gpu_model or 'MODEL')}, gpus: {one.gpus or 'COUNT'}, cpu: CPUS, memory: MEMORY"
        )
        yield f"  #     {_flow(one.instance_type)}: {{cloud: {one.cloud}, {machine}, prices: {{{price}}}}}"


def _plain(text: str) -> str:
    """A text that ends no comment: names in files may hold anything."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _flow(value: object) -> str:
    """A value on one line."""
    text = _dumped(value)
    return _dumped(value, '"') if "\n" in text else text


def _dumped(value: object, style: str | None = None) -> str:
    text: str = yaml.safe_dump(value, default_style=style, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")


def assumed_lines(assumed: Sequence[str]) -> list[str]:
    """For the terminal."""
    return ["assumed:", *(f"  {line}" for line in assumed)] if assumed else []

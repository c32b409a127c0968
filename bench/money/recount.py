"""Work out again what ``money_month.py`` beside it was told, from what happened alone. No line of ours is imported.

Usage: python bench/money/recount.py FOLDER. Prints how many lines agree, and each that does not; exit code 1 where one
does not.

Whose a node's time is: between two looks what pods there are hold from their start; what they leave belongs to who held
it at the look before, until the look that misses it, or until the node fell idle. The rest is shared until the node is
ready, and idle after that. A stopped node's whole last second is paid.
"""

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

DAY = 86_400
WEEK = 7

Sums = dict[str, Fraction]
Held = tuple[Fraction, Fraction | None, str, Fraction]
"""A pod's start, end, team and part of its node."""
Span = tuple[Fraction, Fraction, Sums, bool]


def main() -> None:
    """Compare every line."""
    folder = Path(sys.argv[1])
    raw, charges, told = (json.loads((folder / f"{name}.json").read_text()) for name in ("raw", "charges", "told"))
    wrong = lines = 0
    for name, cluster in raw["clusters"].items():
        metered = meter(raw, cluster)
        billed, whole = bill(raw, charges, name, cluster)
        budgets = standing(raw, metered, billed, whole)
        ours = told[name]
        said = [("metered", metered, ours["metered"]), ("billed", billed, ours["billed"])]
        for part, what in enumerate(("of budgets billed", "of budgets metered")):
            mine, theirs = ({name: two[part] for name, two in of.items()} for of in (budgets, ours["budgets"]))
            said.append((what, mine, theirs))
        for what, mine in reconciled(metered, billed, whole).items():
            said.append((what, mine, ours[what]))
        for what, mine, theirs in said:
            for key in sorted(mine.keys() | theirs.keys()):
                lines += 1
                true, found = mine.get(key, Fraction(0)), Fraction(theirs.get(key, "0"))
                if abs(true - found) >= Fraction(1, 10_000):
                    wrong += 1
                    print(f"{name} {what} {key}: {float(found):.4f}, should be {float(true):.4f}")
        total = sum(metered.values(), Fraction(0))
        print(f"{name}: ${float(total):,.2f} metered, ${float(sum(billed.values())):,.2f} billed to {len(whole)} days")
    print(f"{lines - wrong} of {lines} lines agree")
    sys.exit(1 if wrong else 0)


def meter(raw: dict[str, Any], cluster: dict[str, Any]) -> Sums:
    """Dollars by "day pool kind team"."""
    out: Sums = defaultdict(Fraction)
    log, looks = cluster["log"], [Fraction(str(t)) for t in cluster["looks"]]
    start: dict[str, tuple[Fraction, list[str]]] = {}
    end: Sums = {}
    work: dict[str, list[tuple[Fraction, Fraction | None, str]]] = defaultdict(list)
    for event in log:
        at = Fraction(str(event["t"]))
        if event["event"] == "start":
            start[event["job"]] = at, [p["node"] for p in event["placement"]]
        elif event["event"] == "stop":
            since, nodes = start.pop(event["job"])
            for node in nodes:
                work[node].append((since, at, event["job"]))
        elif event["event"] == "terminate":
            end[event["node"]] = at
    for job, (since, nodes) in start.items():
        for node in nodes:
            work[node].append((since, None, job))
    ready = {event["node"]: Fraction(str(event["t"])) for event in log if event["event"] == "ready"}
    for event in log:
        if event["event"] != "launch":
            continue
        node, kind = event["node"], event["type"]
        gpus, price = raw["types"][kind]["gpus"], Fraction(raw["types"][kind]["usd"])
        held = [
            (since, until, cluster["jobs"][job]["team"], Fraction(cluster["jobs"][job]["gpus"], gpus))
            for since, until, job in work[node]
        ]
        born, gone = Fraction(str(event["t"])), end.get(node)
        for since, until, shares, was_ready in spans(born, gone, ready.get(node), held, looks):
            split(out, raw, kind, price, since, until, shares, was_ready)
    return out


def spans(
    born: Fraction, gone: Fraction | None, ready: Fraction | None, held: Sequence[Held], looks: Sequence[Fraction]
) -> Iterator[Span]:
    """A node's life in spans: from, to, shares by team, whether what is left is idle."""
    last, known = born, False
    before: Sums = {}
    for look in looks:
        if look < born:
            continue
        if gone is not None and look >= gone:
            break
        here = [(t, team, part) for t, until, team, part in held if t <= look and (until is None or look < until)]
        ends = [until for _, until, _, _ in held if until is not None and until <= look]
        idle = max(ends, default=ready) if not here and ready is not None and ready <= look else None
        marks = {since for since, _, _ in here} | {m for m in (ready, idle) if m is not None and m <= look}
        edges = [last, *sorted(m for m in marks if last < m < look), look]
        for since, until in pairwise(edges):
            now: Sums = defaultdict(Fraction)
            for begun, team, part in here:
                if begun <= since:
                    now[team] += part
            room = 1 - sum(now.values())
            if not (idle is not None and last < idle <= since):
                for team in sorted(before):
                    more = min(room, max(Fraction(0), before[team] - now[team]))
                    now[team] += more
                    room -= more
            yield since, until, dict(now), known or (ready is not None and ready <= since)
        last, known = look, ready is not None and ready <= look
        before = defaultdict(Fraction)
        for _, team, part in here:
            before[team] += part
    if gone is not None and looks and looks[-1] >= gone:
        yield last, gone, dict(before), known
        yield gone, born + math.ceil(gone - born), {}, False


def split(
    out: Sums,
    raw: dict[str, Any],
    kind: str,
    price: Fraction,
    since: Fraction,
    until: Fraction,
    shares: Sums,
    idle: bool,
) -> None:
    """Add a span's dollars to its days."""
    first = date.fromisoformat(raw["start"][:10])
    while since < until:
        number = since // DAY
        stop = min(until, Fraction((number + 1) * DAY))
        usd, left = (stop - since) / 3600 * price, Fraction(1)
        day = first + timedelta(days=int(number))
        for team, part in shares.items():
            if part:
                out[f"{day} {kind} used {team}"] += usd * part
                left -= part
        if left:
            out[f"{day} {kind} {'idle' if idle else 'shared'} "] += usd * left
        since = stop


def bill(
    raw: dict[str, Any], charges: list[dict[str, str]], name: str, cluster: dict[str, Any]
) -> tuple[Sums, set[str]]:
    """Dollars by "day service pool", and the days that the bill covers whole."""
    sums: Sums = defaultdict(Fraction)
    reach: dict[tuple[str, str], str] = {}
    services: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for line in charges:
        tags = json.loads(line["Tags"] or "{}")
        share = Fraction(1) if tags.get("eks:cluster-name") == name else Fraction(0)
        if "eks:cluster-name" not in tags:
            share = Fraction(cluster["share"])
        if not share:
            continue
        day = line["ChargePeriodStart"][:10]
        rate = Fraction(1)
        if line["BillingCurrency"] != "USD":
            rate = Fraction(max((since, usd) for since, usd in raw["rates"] if since <= day)[1])
        usd = Fraction(line["BilledCost"]) * rate
        sums[f"{day} {line['ServiceName']} {tags.get('eks:nodegroup-name', '')}"] += usd * share
        key = line["ServiceName"], line["SubAccountId"]
        services[key] += usd
        reach[key] = max(reach.get(key, ""), line["ChargePeriodEnd"][:10])
    last = date.fromisoformat(max(reach.values()))
    waited = [
        date.fromisoformat(at)
        for key, at in reach.items()
        if date.fromisoformat(at) > last - timedelta(days=WEEK) and services[key] * 100 >= sum(services.values())
    ]
    horizon, first = min([*waited, last]), min(key[:10] for key in sums)
    whole = {str(horizon - timedelta(days=n)) for n in range(1, 60) if str(horizon - timedelta(days=n)) >= first}
    return {key: usd for key, usd in sums.items() if key[:10] in whole}, whole


def reconciled(metered: Sums, billed: Sums, whole: set[str]) -> dict[str, Sums]:
    """Billed above metered by "day pool", what a pool is billed at for a metered dollar, and what is still to come."""
    counted, charged = _by_day_and_pool(metered, 1), _by_day_and_pool(billed, 2)
    days = sorted({day for day, _ in counted})
    both = [day for day in days[1:] if day in whole]
    keys = sorted(key for key in {*counted, *charged} if key[0] in both)
    ratios: dict[str, dict[str, Fraction]] = defaultdict(dict)
    for day, pool in keys:
        if counted[day, pool] >= 1 and charged[day, pool] > 0:
            ratios[pool][day] = charged[day, pool] / counted[day, pool]
    learnt = {pool: factor for pool, of in ratios.items() if (factor := _factor(of)) is not None}
    coming: Sums = defaultdict(Fraction)
    for (day, pool), usd in counted.items():
        if day not in whole:
            coming[pool] += usd * learnt.get(pool, Fraction(1))
    more = {f"{day} {pool}": charged[day, pool] - counted[day, pool] for day, pool in keys}
    return {"more": more, "learnt": learnt, "awaited": coming}


def _by_day_and_pool(sums: Sums, place: int) -> dict[tuple[str, str], Fraction]:
    out: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for key, usd in sums.items():
        out[key[:10], key.split(" ")[place]] += usd
    return out


def _factor(ratios: dict[str, Fraction]) -> Fraction | None:
    """The median of the last four weeks, from five days on, between 0.8 and 1.25."""
    last = date.fromisoformat(max(ratios))
    late = sorted(of for day, of in ratios.items() if date.fromisoformat(day) > last - timedelta(days=28))
    if len(late) < 5:
        return None
    half = len(late) // 2
    middle = late[half] if len(late) % 2 else (late[half - 1] + late[half]) / 2
    return min(max(middle, Fraction(4, 5)), Fraction(5, 4))


def standing(raw: dict[str, Any], metered: Sums, billed: Sums, whole: set[str]) -> dict[str, tuple[Fraction, Fraction]]:
    """Dollars billed and metered of every budget of the month that the last look is in."""

    def of(pool: str = "", team: str = "") -> tuple[Fraction, Fraction]:
        own = [
            (key[:10], usd) for key, usd in metered.items()
            if (not pool or key.split(" ")[1] == pool) and (not team or key.split(" ")[3] == team)
        ]  # fmt: skip
        month = max(key[:7] for key in metered)
        if team:
            return Fraction(0), sum((usd for day, usd in own if day[:7] == month), Fraction(0))
        bills = [(key[:10], usd) for key, usd in billed.items() if not pool or key.split(" ")[2] == pool]
        return (
            sum((usd for day, usd in bills if day[:7] == month), Fraction(0)),
            sum((usd for day, usd in own if day not in whole and day[:7] == month), Fraction(0)),
        )

    return {"all": of(), "pool": of(pool="eight"), **{team: of(team=team) for team in raw["teams"]}}


if __name__ == "__main__":
    main()

"""The SQL that reads a FOCUS export: its sums as they are counted, in one pass over whatever columns there are.

Where an export is written again beside the old one, lines are told apart by resource, hour, service and category.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from pilotlight.adapters.bills.focus_columns import (
    POOL_TAGS,
    TEAM_TAGS,
    Columns,
    halves_of,
    moment_of,
    number_of,
    quote_name,
    read_once,
    tag_of,
    text_of,
)
from pilotlight.decide.money.bills.bill_scope import Rules

CURRENCY = "USD"
DAY_US = 86_400_000_000
VERSION = "pilotlight_version"
"""The column that numbers the versions of an export, the newest highest."""
_SAYS = ("ResourceId", "ChargeCategory", "ChargeClass")
"""What a line keeps when its export is written again, with its time. Amounts, tags, prices, texts, zones change, and
services are renamed."""
_SAYS_WHAT = ("SkuId", "SubAccountId", "RegionId")
"""What it is of where no resource is told."""

_BESIDE = {"effective": "EffectiveCost", "listed": "ListCost"}
"""Amounts beside the billed one."""
_AMOUNTS = {"usd": "BilledCost", **_BESIDE}

Detail = Literal["all", "names", "least"]


MOST_LINES = 100_000
"""So many sums of a bill's files are kept with every detail."""
FEW_LINES = 2_000
"""Of each file at least so many."""
MOST_NAMES = 1_000
"""Of a file with more sums than there is room for, so many teams, services and accounts keep their names: those of most
lines."""
OTHERS = "(others)"
_NAMED = ("team", "pool", "service", "account", "payer")
_LEAST = ("service", "account", "payer")
MOST_KEYS = 8_192
"""So many lines of a file are looked at to tell its days from another's: of more, an even sample of each day."""


def sums_query(columns: Columns, rules: Rules, detail: Detail = "all", *, some: bool = False) -> str:
    """Makes the table ``sums`` by day, team, pool, service, account, currency, instance and what ties a line to the
    cluster.

    Values of the scope's tags come as a list: as wanted, or another. Of instances those in ``$nodes`` are told, where
    ``some`` are wanted. With less ``detail`` names that are not in the table ``dear`` become one, but never one that
    says whose a line is; ``least`` is without services, accounts and machines.

    Lines are added up by their columns as they stand, then by what these say: few sums are asked, not each line.
    """
    tags = _tags(columns, rules)
    said, source, names = _named(columns) | tags | _said(columns, some=some), "charge", ""
    early = {name for name, value in said.items() if not columns.few.issuperset(columns.read_by(value))}
    if detail != "all":
        source, names = _folded(rules, least=detail == "least")
        early |= {*_NAMED, "instance"}
    raw = columns.read_by(*(value for name, value in said.items() if name not in early))
    amounts = {name: halves_of(columns, of) for name, of in _AMOUNTS.items() if of in columns}
    told = _converted(amounts)
    read = [f"{value} AS {name}" for name, value in [*sorted((one, said[one]) for one in early), *_narrow(amounts)]]
    until = moment_of(columns, "ChargePeriodEnd")
    keys = _each([*raw, *sorted(early)])
    said |= {name: name for name in early}
    sums = [f"sum({name if name in amounts else 'NULL::DECIMAL(38, 15)'}) AS {name}" for name in _BESIDE]
    return f"""
        CREATE OR REPLACE TEMP TABLE sums AS
        WITH line AS (SELECT {_each(columns.read_by(until, *raw, *told, *read))}
            {read_once(moment_of(columns, "ChargePeriodStart"))} AS since FROM export),
        charge AS (SELECT {_each(dict.fromkeys([*raw, *told, *read]))} {until} AS until, since
        FROM line WHERE since IS NULL OR (since >= $start AND since < $end)),
        part AS (SELECT {keys} CAST(since AS DATE) AS day, {_doubt(columns, amounts)} AS doubt,
            {_each(f"{_sum(amounts, name)} AS {name}" for name in amounts)} count(*) AS charges,
            max(CASE WHEN epoch_us(until) - epoch_us(since) <= {DAY_US} THEN until END) AS reach
        FROM (SELECT charge.* {names} FROM {source}) GROUP BY ALL)
        SELECT day, {", ".join(f"{said[name]} AS {name}" for name in _NAMED)},
            [{", ".join(said[name] for name in tags)}]::VARCHAR[] AS tags, {said["currency"]} AS currency, doubt,
            sum(usd) AS usd, sum(charges)::BIGINT AS charges, max(reach) FILTER (WHERE {said["usage"]}) AS reach,
            {said["egress"]} AS egress, {said["instance"]} AS instance,
            {", ".join(sums)}, {said["commitment"]} AS commitment
        FROM part GROUP BY ALL"""


_Amounts = Mapping[str, tuple[str, str]]


def _narrow(amounts: _Amounts) -> list[tuple[str, str]]:
    return [(name, narrow) for name, (narrow, _) in amounts.items()]


def _converted(amounts: _Amounts) -> list[str]:
    """Columns of amounts that are not read as they stand: what they tell may be no number."""
    return [of for name, (narrow, _) in amounts.items() if (of := quote_name(_AMOUNTS[name])) != narrow]


def _doubt(columns: Columns, amounts: _Amounts) -> str:
    """Why a line cannot be counted: a number of ``DOUBTS``. An amount beside the billed one may be missing, but what is
    told of it is a number."""
    none = {name: f"{name} IS NULL" + (f" AND {wide} IS NULL" if wide else "") for name, (_, wide) in amounts.items()}
    beside = [(name, of) for name, of in _BESIDE.items() if quote_name(of) in _converted(amounts)]
    odd = " OR ".join(f"({none[name]} AND {text_of(columns, of)} <> '')" for name, of in beside)
    told = f"WHEN {odd} THEN 3" if odd else ""
    return f"CASE WHEN since IS NULL OR until IS NULL THEN 2 WHEN {none['usd']} THEN 1 {told} ELSE 0 END"


def _sum(amounts: _Amounts, name: str) -> str:
    """The sum of an amount. A line that lacks one beside the billed one has what is billed, where others tell it."""
    wide, billed = amounts[name][1], amounts["usd"][1]
    small, large = name, [wide]
    if name != "usd":
        small = (
            f"CASE WHEN {name} IS NOT NULL THEN {name} WHEN {wide} IS NULL THEN usd END"
            if wide
            else f"COALESCE({name}, usd)"
        )
        large = [wide, f"CASE WHEN usd IS NULL THEN {billed} END" if billed else ""]
    total = f"CAST(sum({small}) AS DECIMAL(38, 15))"
    if not any(large):
        return total
    more = f"sum(CASE WHEN {name} IS NULL THEN COALESCE({', '.join(filter(None, large))}) END)"
    return f"list_sum([{total}, {more}])"


def _each(values: Iterable[str]) -> str:
    return "".join([f"{value}, " for value in values])


def _tags(columns: Columns, rules: Rules) -> dict[str, str]:
    """The scope's tags, as wanted or another."""
    wanted = rules.scope.tags if rules.scope else {}
    return {
        f"tag_{n}": _as_wanted(tag_of(columns, (key,)), value.replace("{cluster}", rules.cluster))
        for n, (key, value) in enumerate(wanted.items())
    }


def _said(columns: Columns, *, some: bool) -> dict[str, str]:
    """What a line says beside its names and its tags."""
    instance, of = _instance(columns), text_of(columns, "ChargeDescription")
    if some:
        instance = f"CASE WHEN list_contains($nodes::VARCHAR[], {instance}) THEN {instance} ELSE '' END"
    return {
        "currency": f"COALESCE({text_of(columns, 'BillingCurrency')}, '')",
        "usage": f"COALESCE({text_of(columns, 'ChargeCategory')}, 'Usage') = 'Usage'",
        "egress": f"COALESCE(regexp_matches({of}, '(?i)data transfer|egress'), false)",
        "instance": instance,
        "commitment": _commitment(columns),
    }


def dear_query(columns: Columns) -> str:
    """Makes the table ``dear`` of the names, by what they are of, that most lines have."""
    top = ", ".join(f"approx_top_k({name}, {MOST_NAMES}) AS {name}" for name in _NAMED)
    each = " UNION ALL ".join(f"SELECT '{name}' AS what, unnest({name}) AS name FROM top" for name in _NAMED)
    named = ", ".join(f"{value} AS {name}" for name, value in _named(columns).items())
    return f"""
        CREATE OR REPLACE TEMP TABLE dear AS
        WITH charge AS (SELECT {named} FROM export), top AS (SELECT {top} FROM charge) {each}"""


def _named(columns: Columns) -> dict[str, str]:
    named = {
        "team": tag_of(columns, TEAM_TAGS, blank=False),
        "pool": tag_of(columns, POOL_TAGS, blank=False),
        "service": text_of(columns, "ServiceName"),
        "account": text_of(columns, "SubAccountId"),
        "payer": text_of(columns, "BillingAccountId"),
    }
    return {name: f"COALESCE({value}, '')" for name, value in named.items()}


def _folded(rules: Rules, *, least: bool) -> tuple[str, str]:
    """What ``sums`` is made from where there is less detail, and how names are read of it."""
    scope = rules.scope
    accounts = scope.accounts if scope else ()
    ties = {
        "team": (), "pool": (*rules.pools, *rules.pools.values()), "service": scope.services if scope else (),
        "account": accounts, "payer": accounts,
    }  # fmt: skip
    source, names = "charge", []
    for name in _NAMED:
        stays = ", ".join("'{}'".format(value.replace("'", "''")) for value in ("", *ties[name]))
        known = "" if least and name in _LEAST else f" OR dear_{name}.name IS NOT NULL"
        if known:
            source += (
                f" LEFT JOIN (SELECT name FROM dear WHERE what = '{name}') AS dear_{name} ON dear_{name}.name = {name}"
            )
        names.append(f"CASE WHEN {name} IN ({stays}){known} THEN {name} ELSE '{OTHERS}' END AS {name}")
    if least:
        names.append("'' AS instance")
    return source, f"REPLACE ({', '.join(names)})"


def keys_query(columns: Columns) -> str:
    """Makes the table ``line``: each day's lines from ``$start`` on, by a hash of what a line keeps when its export is
    written again and by service, with how many they are, their sum, and the bytes of a ``KeyTold``.

    Where no resource is told, lines of a hash are alike in their dollars alone. Exports write one resource in small
    letters and in capitals, and a machine with its ARN and without.
    """
    said = [f"lower(COALESCE({text_of(columns, name)}, ''))" for name in _SAYS]
    said[0] = rf"regexp_replace({said[0]}, '^arn:.*/(i-[0-9a-f]{{8,17}})$', '\1')"
    told = [text_of(columns, name) for name in _SAYS_WHAT if name in columns]
    resource = f"NULLIF({text_of(columns, 'ResourceId')}, '')"
    of = f"regexp_replace({text_of(columns, 'ChargeDescription')}, '[0-9.,]+', '', 'g')"
    of = f"COALESCE(NULLIF({text_of(columns, 'SkuId')}, ''), {of})"
    what = f"NULLIF(concat_ws('|', {', '.join(told)}), '')" if told else "NULL"
    otherwise = "''" if "ResourceId" in columns else f"COALESCE({text_of(columns, 'BilledCost')}, '')"
    said.append(f"CASE WHEN {resource} IS NULL THEN COALESCE({what}, {otherwise}) ELSE '' END")
    since = moment_of(columns, "ChargePeriodStart")
    return f"""
        CREATE OR REPLACE TEMP TABLE line AS
        SELECT *, CASE WHEN usd <> 0 THEN hash(usd) % 65535 + 1 ELSE 0 END AS sum,
            CASE WHEN bare THEN sum WHEN what IS NULL THEN 0 ELSE what % 65535 + 1 END AS of
        FROM (SELECT CAST({since} AS DATE) AS day, hash(epoch_us({since}), {", ".join(said)}) >> 32 AS key,
            hash(lower(COALESCE({text_of(columns, "ServiceName")}, ''))) >> 48 AS service, count(*) AS lines,
            sum({number_of(columns, "BilledCost")}) AS usd,
            bool_or({resource} IS NULL) AS bare, bit_xor(CASE WHEN {of} <> '' THEN hash({of}) END) AS what
        FROM export WHERE {since} >= $start GROUP BY ALL)"""


def _as_wanted(tag: str, value: str) -> str:
    wanted = value.replace("'", "''")
    return f"CASE WHEN {tag} = '{wanted}' THEN '{wanted}' WHEN {tag} IS NOT NULL THEN '{'-' if not value else ''}' END"


def _instance(columns: Columns) -> str:
    """The machine that a line is of, as nodes name it: i-0abc alone or at the end of an ARN, or .../instances/NAME."""
    if not columns.machines:
        return "''"
    id = text_of(columns, "ResourceId")
    return (
        f"CASE WHEN strlen({id}) < 10 THEN '' ELSE "  # Shorter than any.
        f"COALESCE(NULLIF(regexp_extract({id}, '(^|/)(i-[0-9a-f]{{8,17}})$', 2), ''), "
        f"regexp_extract({id}, '/instances/([^/]+)$', 1), '') END"
    )


def _commitment(columns: Columns) -> str:
    """What a line is of a commitment discount, as ``BilledDay.commitment``."""
    status, of = text_of(columns, "CommitmentDiscountStatus"), text_of(columns, "CommitmentDiscountId")
    bought = f"{text_of(columns, 'ChargeCategory')} = 'Purchase' AND {of} <> ''"
    return (
        f"CASE WHEN {status} = 'Unused' THEN 'unused' WHEN {bought} THEN 'fee' "
        f"WHEN {status} = 'Used' OR {of} <> '' THEN 'used' ELSE '' END"
    )


def node_query(columns: Columns, *, several: bool) -> str:
    """Charges of machines from ``$start`` to ``$end``, those that are alike as one, as ``NodeCharge`` wants them.

    A spot price has no list price beside it. A charge whose unit is no time is not for the machine's time.
    """
    where = "since >= $start AND since < $end AND instance <> ''"
    if several:
        where += f" AND (CAST(since AS DATE), {VERSION}) NOT IN (SELECT (day, version) FROM dropped)"
    unit = f"lower(COALESCE({text_of(columns, 'PricingUnit')}, {text_of(columns, 'ConsumedUnit')}))"
    quantity = ", ".join(number_of(columns, name, 19, 9) for name in ("PricingQuantity", "ConsumedQuantity"))
    priced = text_of(columns, "PricingCategory")
    covered = f"{text_of(columns, 'CommitmentDiscountStatus')} = 'Used' OR {priced} = 'Committed'"
    return f"""
        WITH {_paid(columns)},
        charge AS (SELECT
            {number_of(columns, "BilledCost")} AS usd,
            {moment_of(columns, "ChargePeriodStart")} AS since,
            {moment_of(columns, "ChargePeriodEnd")} AS until,
            {_instance(columns)} AS instance,
            COALESCE({tag_of(columns, POOL_TAGS)}, '') AS pool,
            {_CURRENCY_PAID} AS currency,
            COALESCE({text_of(columns, "ChargeCategory")}, 'Usage') AS category,
            COALESCE(regexp_matches({text_of(columns, "ChargeDescription")}, '(?i)data transfer|egress'), false)
                AS moved,
            COALESCE({covered}, false) AS covered,
            COALESCE({priced} = 'Dynamic', false) AS spot,
            CASE WHEN {unit} IN ('hours', 'hour', 'hrs', 'hr', 'h') THEN 3600
                WHEN {unit} IN ('minutes', 'minute', 'min') THEN 60
                WHEN {unit} IN ('seconds', 'second', 's') THEN 1 WHEN {unit} IS NOT NULL THEN 0 END AS unit_s,
            COALESCE({quantity}) AS quantity,
            {number_of(columns, "ListUnitPrice", 19, 9)} AS price,
            {number_of(columns, "ListCost")} AS listed,
            {number_of(columns, "EffectiveCost")} AS effective
            {", " + VERSION if several else ""}
        FROM paid_export),
        own AS (SELECT *,
            category = 'Usage' AND NOT moved AND COALESCE(unit_s > 0, true) AS timed,
            CASE WHEN spot THEN usd ELSE COALESCE(listed, usd) END AS full_usd,
            CASE WHEN unit_s > 0 THEN quantity END AS used
        FROM charge WHERE {where}),
        told AS (SELECT *,
            CASE WHEN spot THEN usd ELSE COALESCE(price * used, full_usd) END AS exact,
            min(since) FILTER (WHERE timed) OVER (PARTITION BY instance) AS first
        FROM own)
        SELECT instance, pool, currency, category, timed, covered, unit_s, count(*), count(*) - count(usd),
            COALESCE(sum(usd), 0), COALESCE(sum(full_usd), 0), COALESCE(sum(exact), 0),
            CASE WHEN count(effective) = count(*) THEN sum(effective) END,
            CASE WHEN count(used) = count(*) THEN sum(used) END,
            min(since), arg_min(until, since), sum(used) FILTER (WHERE since = first)
        FROM told GROUP BY ALL ORDER BY ALL"""


_CURRENCY_PAID = f"""COALESCE(told, CASE WHEN least = most THEN least WHEN least <> most THEN '' END,
    (SELECT CASE WHEN min(least) = max(most) THEN min(least) WHEN count(*) > 0 THEN '' END FROM paid), '{CURRENCY}')"""
"""A line's own currency, else the only one of who pays, else of the bill: dollars where no line tells any, and an empty
one where they tell several."""


def _paid(columns: Columns) -> str:
    """The currencies of each who pays, and the export's lines with these and their own."""
    told = f"NULLIF(upper(trim({text_of(columns, 'BillingCurrency')})), '')"
    payer = f"COALESCE({text_of(columns, 'BillingAccountId')}, '')"
    return f"""paid AS (SELECT {payer} AS payer, min({told}) AS least, max({told}) AS most
            FROM export WHERE {told} IS NOT NULL GROUP BY 1),
        paid_export AS (SELECT export.*, {told} AS told, least, most FROM export LEFT JOIN paid ON payer = {payer})"""


def reach_query(columns: Columns) -> str:
    """The end of the latest usage of at most a day from ``$start`` to ``$end``."""
    return f"""
        WITH charge AS (SELECT
            {moment_of(columns, "ChargePeriodStart")} AS since, {moment_of(columns, "ChargePeriodEnd")} AS until,
            COALESCE({text_of(columns, "ChargeCategory")}, 'Usage') = 'Usage' AS usage
        FROM export)
        SELECT max(until) FROM charge
        WHERE usage AND since >= $start AND since < $end AND epoch_us(until) - epoch_us(since) <= {DAY_US}"""

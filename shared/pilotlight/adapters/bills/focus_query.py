"""The SQL that reads a FOCUS export: its sums as they are counted, in one pass over whatever columns there are.

Where an export was written again beside the old one, a day of the older is dropped once half of its lines or more are
written again in a newer one: that is the whole again, with its corrections. A file of corrections alone adds. A line is
known by its resource, hour, service and category.
"""

from collections.abc import Mapping, Sequence

CURRENCY = "USD"
DAY_US = 86_400_000_000
VERSION = "pilotlight_version"
"""The column that numbers the versions of an export, the newest highest."""
TEAM_TAGS = ("pilotlight.dev/team", "team", "Team", "user:team", "user:Team")
POOL_TAGS = (
    "pilotlight.dev/pool", "eks:nodegroup-name", "aws:eks:nodegroup-name", "goog-k8s-node-pool-name",
    "aks-managed-poolName", "karpenter.sh/nodepool",
)  # fmt: skip
NAMES = {
    name.lower(): name
    for name in (
        "ConsumedQuantity", "ConsumedUnit", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit",
        "BilledCost", "EffectiveCost", "ListCost", "BillingCurrency", "ServiceName", "SubAccountId", "BillingAccountId",
        "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodStart", "ChargePeriodEnd", "ResourceId",
        "SkuId", "RegionId", "Tags", "CommitmentDiscountId", "CommitmentDiscountStatus",
    )
}  # fmt: skip
"""FOCUS's columns that are read, as exports write them too: in small letters, with and without underscores."""
_SAYS = ("ResourceId", "ChargePeriodStart", "ServiceName", "ChargeCategory", "ChargeClass")
"""What a line keeps when its export is written again. Amounts, tags, price lists, texts and zones change."""
_PREFIXES = ("", "user:", "resourceTags/", "resourceTags/user:")
"""Exports of AWS put these before a tag's key."""
_SAYS_WHAT = ("SkuId", "SubAccountId", "RegionId")
"""What it is of where no resource is told."""

Columns = Mapping[str, str]
"""The export's columns with their types."""


def query(columns: Columns, tags: Sequence[str], *, several: bool) -> str:
    """The sums by day, team, pool, service, account, currency, instance and what ties a line to the cluster.

    ``tags`` are the keys that the bill's scope names: their values come as a list. With ``several`` versions of the
    export the days of the table ``dropped`` are left out.
    """
    where = "(since IS NULL OR (since >= $start AND since < $end))"
    if several:
        gone = "SELECT (day, version) FROM dropped WHERE whole"
        where += f" AND (since IS NULL OR (CAST(since AS DATE), {VERSION}) NOT IN ({gone}))"
    return f"""
        WITH charge AS (SELECT
            TRY_CAST("BilledCost" AS DECIMAL(38, 15)) AS usd,
            {_moment(columns, "ChargePeriodStart")} AS since,
            {_moment(columns, "ChargePeriodEnd")} AS until,
            COALESCE({_text(columns, "BillingCurrency")}, '{CURRENCY}') AS currency,
            COALESCE({_tag(columns, TEAM_TAGS)}, '') AS team,
            COALESCE({_tag(columns, POOL_TAGS)}, '') AS pool,
            COALESCE({_text(columns, "ServiceName")}, '') AS service,
            COALESCE({_text(columns, "SubAccountId")}, '') AS account,
            COALESCE({_text(columns, "BillingAccountId")}, '') AS payer,
            [{", ".join(_tag(columns, (key,)) for key in tags)}]::VARCHAR[] AS tags,
            COALESCE({_text(columns, "ChargeCategory")}, 'Usage') = 'Usage' AS usage,
            COALESCE(regexp_matches({_text(columns, "ChargeDescription")}, '(?i)data transfer|egress'), false) AS egress
            , {_instance(columns)} AS instance,
            {_amount(columns, "EffectiveCost")} AS effective, {_amount(columns, "ListCost")} AS listed,
            {_commitment(columns)} AS commitment
            {", " + VERSION if several else ""}
        FROM export)
        SELECT CAST(since AS DATE), team, pool, service, account, payer, tags, currency,
            CASE WHEN since IS NULL OR until IS NULL THEN 2 WHEN usd IS NULL THEN 1 ELSE 0 END AS doubt,
            sum(usd), count(*),
            max(until) FILTER (WHERE usage AND epoch_us(until) - epoch_us(since) <= {DAY_US}), egress, instance,
            sum(effective), sum(listed), commitment
        FROM charge WHERE {where}
        GROUP BY ALL ORDER BY ALL"""


def superseded_days(columns: Columns) -> str:
    """Makes the table ``dropped`` of the versions' days that share lines with a newer version: ``whole`` where that
    has them whole. Each with its sum, and that of the newest that shares them."""
    known = [name for name in _SAYS if name in columns]
    what = [f'CAST("{name}" AS VARCHAR)' for name in _SAYS_WHAT if name in columns]
    said = [f"COALESCE(CAST(\"{name}\" AS VARCHAR), '')" for name in known]
    if what:
        alone = f"concat_ws('|', {', '.join(what)})"
        said.append(f"CASE WHEN {_text(columns, 'ResourceId')} IS NULL THEN {alone} ELSE '' END")
    elif "ResourceId" not in columns:
        said.append('CAST("BilledCost" AS VARCHAR)')
    return f"""
        CREATE TEMP TABLE dropped AS
        WITH line AS (
            SELECT {VERSION}, CAST({_moment(columns, "ChargePeriodStart")} AS DATE) AS day,
                hash({", ".join(said)}) AS key, count(*) AS lines, sum(TRY_CAST("BilledCost" AS DECIMAL(38, 15))) AS usd
            FROM export WHERE {_moment(columns, "ChargePeriodStart")} >= $start GROUP BY ALL),
        newest AS (SELECT day, key, max({VERSION}) AS newest FROM line GROUP BY ALL),
        sums AS (SELECT day, {VERSION} AS newest, sum(usd) AS total FROM line GROUP BY ALL),
        shared AS (
            SELECT {VERSION} AS version, day, max(newest) AS newest, sum(usd) AS usd,
                2 * sum(CASE WHEN newest > {VERSION} THEN lines ELSE 0 END) >= sum(lines) AS whole
            FROM line JOIN newest USING (day, key)
            GROUP BY ALL HAVING max(newest) > {VERSION})
        SELECT version, day, whole, usd, total FROM shared JOIN sums USING (day, newest)"""


def _instance(columns: Columns) -> str:
    """The machine that a line is of, as nodes name it: i-0abc alone or at the end of an ARN, or .../instances/NAME."""
    id = _text(columns, "ResourceId")
    return (
        f"COALESCE(NULLIF(regexp_extract({id}, '(^|/)(i-[0-9a-f]{{8,17}})$', 2), ''), "
        f"regexp_extract({id}, '/instances/([^/]+)$', 1), '')"
    )


def _text(columns: Columns, name: str) -> str:
    return f'CAST("{name}" AS VARCHAR)' if name in columns else "NULL"


def _amount(columns: Columns, name: str) -> str:
    """An amount beside the billed one; a line that lacks it has what is billed, where others tell it."""
    if name not in columns:
        return "CAST(NULL AS DECIMAL(38, 15))"
    return f'COALESCE(TRY_CAST("{name}" AS DECIMAL(38, 15)), TRY_CAST("BilledCost" AS DECIMAL(38, 15)))'


def _commitment(columns: Columns) -> str:
    """What a line is of a commitment discount, as ``BilledDay.commitment``."""
    status, of = _text(columns, "CommitmentDiscountStatus"), _text(columns, "CommitmentDiscountId")
    bought = f"{_text(columns, 'ChargeCategory')} = 'Purchase' AND {of} <> ''"
    return (
        f"CASE WHEN {status} = 'Unused' THEN 'unused' WHEN {bought} THEN 'fee' "
        f"WHEN {status} = 'Used' OR {of} <> '' THEN 'used' ELSE '' END"
    )


def _moment(columns: Columns, name: str) -> str:
    """A column as a UTC time without its zone. Text and times with a zone cost a conversion each."""
    kind = columns[name]
    if kind.startswith("TIMESTAMP") and "ZONE" not in kind:
        return f'"{name}"'
    at = f'TRY_CAST("{name}" AS TIMESTAMPTZ)'
    if kind == "VARCHAR":  # Without seconds a time is none to DuckDB.
        whole = f"regexp_replace(\"{name}\", '^(.{{10}}[T ][0-9]{{2}}:[0-9]{{2}})(Z|[+-].*)?$', '\\1:00\\2')"
        at = f"COALESCE({at}, TRY_CAST({whole} AS TIMESTAMPTZ))"
    return f"make_timestamp(epoch_us({at}))"


def _tag(columns: Columns, keys: Sequence[str]) -> str:
    """The first of some tags that a row has, however its tags are written; or NULL."""
    flat = [f"CAST({quote_name(name)} AS VARCHAR)" for name in (f"x_{key}" for key in keys) if name in columns]
    kind = columns.get("Tags", "")
    names = [_quoted(f"{prefix}{key}") for key in keys for prefix in _PREFIXES]
    if kind.startswith("MAP"):
        flat += [f"CAST(\"Tags\"['{name}'] AS VARCHAR)" for name in names]
    elif kind.endswith("[]"):
        flat += [f"CAST(list_filter(\"Tags\", lambda tag: tag.key = '{name}')[1].value AS VARCHAR)" for name in names]
    elif kind in ("VARCHAR", "JSON"):
        flat += [f'json_extract_string(TRY_CAST("Tags" AS JSON), \'$."{name}"\')' for name in names]
    return f"COALESCE({', '.join(flat)})" if flat else "NULL"


def quote_name(name: str) -> str:
    """A column's name in a query."""
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return text.replace("'", "''").replace("\\", "").replace('"', "")


def node_query(columns: Columns, *, several: bool) -> str:
    """Charges of machines from ``$start`` to ``$end``, those that are alike as one, as ``NodeCharge`` wants them.

    A spot price has no list price beside it. A charge whose unit is no time is not for the machine's time.
    """
    where = "since >= $start AND since < $end AND instance <> ''"
    if several:
        where += f" AND (CAST(since AS DATE), {VERSION}) NOT IN (SELECT (day, version) FROM dropped WHERE whole)"
    unit = f"lower(COALESCE({_text(columns, 'PricingUnit')}, {_text(columns, 'ConsumedUnit')}))"
    quantity = ", ".join(_number(columns, name, 19, 9) for name in ("PricingQuantity", "ConsumedQuantity"))
    covered = (
        f"{_text(columns, 'CommitmentDiscountStatus')} = 'Used' OR {_text(columns, 'PricingCategory')} = 'Committed'"
    )
    return f"""
        WITH charge AS (SELECT
            TRY_CAST("BilledCost" AS DECIMAL(38, 15)) AS usd,
            {_moment(columns, "ChargePeriodStart")} AS since,
            {_moment(columns, "ChargePeriodEnd")} AS until,
            {_instance(columns)} AS instance,
            COALESCE({_tag(columns, POOL_TAGS)}, '') AS pool,
            upper(COALESCE({_text(columns, "BillingCurrency")}, '{CURRENCY}')) AS currency,
            COALESCE({_text(columns, "ChargeCategory")}, 'Usage') AS category,
            COALESCE(regexp_matches({_text(columns, "ChargeDescription")}, '(?i)data transfer|egress'), false) AS moved,
            COALESCE({covered}, false) AS covered,
            COALESCE({_text(columns, "PricingCategory")} = 'Dynamic', false) AS spot,
            CASE WHEN {unit} IN ('hours', 'hour', 'hrs', 'hr', 'h') THEN 3600
                WHEN {unit} IN ('minutes', 'minute', 'min') THEN 60
                WHEN {unit} IN ('seconds', 'second', 's') THEN 1 WHEN {unit} IS NOT NULL THEN 0 END AS unit_s,
            COALESCE({quantity}) AS quantity,
            {_number(columns, "ListUnitPrice", 19, 9)} AS price,
            {_number(columns, "ListCost")} AS listed,
            {_number(columns, "EffectiveCost")} AS effective
            {", " + VERSION if several else ""}
        FROM export),
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


def reach_query(columns: Columns) -> str:
    """The end of the latest usage of at most a day from ``$start`` to ``$end``."""
    return f"""
        WITH charge AS (SELECT
            {_moment(columns, "ChargePeriodStart")} AS since, {_moment(columns, "ChargePeriodEnd")} AS until,
            COALESCE({_text(columns, "ChargeCategory")}, 'Usage') = 'Usage' AS usage
        FROM export)
        SELECT max(until) FROM charge
        WHERE usage AND since >= $start AND since < $end AND epoch_us(until) - epoch_us(since) <= {DAY_US}"""


def _number(columns: Columns, name: str, width: int = 38, places: int = 15) -> str:
    kind = f"DECIMAL({width}, {places})"
    return f'TRY_CAST("{name}" AS {kind})' if name in columns else f"CAST(NULL AS {kind})"

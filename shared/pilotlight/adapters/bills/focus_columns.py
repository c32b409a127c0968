"""Columns of a FOCUS export, as SQL reads each: text, amounts, times, and tags however they are written."""

from collections.abc import Sequence

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
_PREFIXES = ("", "user:", "resourceTags/", "resourceTags/user:")
"""Exports of AWS put these before a tag's key."""


class Columns(dict[str, str]):
    """An export's columns with their types, and keys of its tags: None where they were not asked for."""

    tags: frozenset[str] | None = None


def text_of(columns: Columns, name: str) -> str:
    """A column as text."""
    return f'CAST("{name}" AS VARCHAR)' if name in columns else "NULL"


def amount_of(columns: Columns, name: str) -> str:
    """An amount beside the billed one; a line that lacks it has what is billed, where others tell it."""
    if name not in columns:
        return "CAST(NULL AS DECIMAL(38, 15))"
    return f"COALESCE({number_of(columns, name)}, {number_of(columns, 'BilledCost')})"


def moment_of(columns: Columns, name: str) -> str:
    """A column as a UTC time without its zone. Text and times with a zone cost a conversion each: text in UTC, to the
    second, is read without one."""
    kind = columns[name]
    if kind.startswith("TIMESTAMP") and "ZONE" not in kind:
        return f'"{name}"'
    at = f'TRY_CAST("{name}" AS TIMESTAMPTZ)'
    if kind == "VARCHAR":  # Without seconds a time is none to DuckDB.
        whole = f"regexp_replace(\"{name}\", '^(.{{10}}[T ][0-9]{{2}}:[0-9]{{2}})(Z|[+-].*)?$', '\\1:00\\2')"
        leap = f"regexp_replace(\"{name}\", ':60', ':59')"
        at = f"COALESCE({at}, TRY_CAST({whole} AS TIMESTAMPTZ), TRY_CAST({leap} AS TIMESTAMPTZ))"
        plain = f'"{name}"[17] = \':\' AND (length("{name}") = 19 OR "{name}"[20:] = \'Z\')'
        utc = f'CASE WHEN {plain} THEN TRY_CAST("{name}" AS TIMESTAMP) END'
        return f"COALESCE({utc}, make_timestamp(epoch_us({at})))"
    return f"make_timestamp(epoch_us({at}))"


def tag_of(columns: Columns, keys: Sequence[str], *, blank: bool = True) -> str:
    """The first of some tags that a row has, however its tags are written; or NULL. Of several spellings one that is
    ``blank`` may stand for none."""
    flat = [f"CAST({quote_name(name)} AS VARCHAR)" for name in (f"x_{key}" for key in keys) if name in columns]
    kind = columns.get("Tags", "")
    names = (f"{prefix}{key}" for key in keys for prefix in _PREFIXES)
    flat += _tags_of(kind, [_quoted(name) for name in names if columns.tags is None or name in columns.tags])
    flat = flat if blank else [f"NULLIF({value}, '')" for value in flat]
    return f"COALESCE({', '.join(flat)})" if flat else "NULL"


def _tags_of(kind: str, names: Sequence[str]) -> list[str]:
    """Tags of these names, by the type of the column that they all stand in."""
    if kind.endswith("[]"):
        key, value = ("tag['key']", "['value']") if kind.startswith("MAP") else ("tag.key", ".value")
        return [f"CAST(list_filter(\"Tags\", lambda tag: {key} = '{name}')[1]{value} AS VARCHAR)" for name in names]
    if kind.startswith("MAP"):
        return [f"CAST(\"Tags\"['{name}'] AS VARCHAR)" for name in names]
    if kind in ("VARCHAR", "JSON") or kind.startswith("STRUCT"):
        return [f"json_extract_string({_json_of_tags(kind)}, '$.\"{name}\"')" for name in names]
    return []


def tag_keys_query(columns: Columns) -> str:
    """Each key of the export's tags, once: few of the many spellings are there, and each costs a reading of all tags.
    Empty where nothing is gained by that."""
    kind = columns.get("Tags", "")
    if kind.startswith("MAP") and not kind.endswith("[]"):
        keys = 'map_keys("Tags")'
    elif kind in ("VARCHAR", "JSON") or (kind.startswith("STRUCT") and not kind.endswith("[]")):
        keys = f"json_keys({_json_of_tags(kind)})"
    else:
        return ""
    return f"SELECT DISTINCT unnest({keys}) FROM export"


def _json_of_tags(kind: str) -> str:
    return 'to_json("Tags")' if kind.startswith("STRUCT") else 'TRY_CAST("Tags" AS JSON)'


def tags_of_list(text: str) -> str:
    """Tags in text: where they are a list of keys and values, as the object that they come to."""
    key, value = (
        f"to_json(COALESCE(json_extract_string(tag, '$.{name}'), json_extract_string(tag, '$.{name.title()}')))"
        for name in ("key", "value")
    )
    each = f"list_transform(json_extract(TRY_CAST({text} AS JSON), '$[*]'), lambda tag: {key} || ':' || {value})"
    return f"CASE WHEN {text} LIKE '[%' THEN '{{' || list_aggregate({each}, 'string_agg', ',') || '}}' ELSE {text} END"


def quote_name(name: str) -> str:
    """A column's name in a query."""
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return text.replace("'", "''").replace("\\", "").replace('"', "")


def number_of(columns: Columns, name: str, width: int = 38, places: int = 15) -> str:
    """A column as a decimal. Text of nine digits each way is read as a narrow one: a wide one costs fiftyfold."""
    kind = f"DECIMAL({width}, {places})"
    if name not in columns:
        return f"CAST(NULL AS {kind})"
    wide = f'TRY_CAST("{name}" AS {kind})'
    if columns[name] != "VARCHAR" or width <= 18:
        return wide
    few = f"regexp_full_match(\"{name}\", '-?[0-9]{{1,9}}([.][0-9]{{1,9}})?')"
    return f'CASE WHEN {few} THEN CAST(TRY_CAST("{name}" AS DECIMAL(18, 9)) AS {kind}) ELSE {wide} END'

"""Columns of a FOCUS export, as SQL reads each: text, amounts, times, and tags however they are written."""

from collections.abc import Mapping, Sequence

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
FEW = frozenset(
    {
        "BillingCurrency", "ServiceName", "SubAccountId", "BillingAccountId", "ChargeCategory",
        "CommitmentDiscountStatus",
    }
)  # fmt: skip
"""Columns of few texts."""
BINARY = ("DOUBLE", "FLOAT")
NARROW, PLACES, SMALL = 18, 15, 999
"""Digits of a decimal that is a machine's word, those after its point of an amount, and what then fits before it."""
MACHINE = """strlen("ResourceId") >= 10 AND (contains("ResourceId", 'i-') OR contains("ResourceId", '/instances/'))"""
"""True for a resource that may be a machine."""
_PREFIXES = ("", "user:", "resourceTags/", "resourceTags/user:")
"""Exports of AWS put these before a tag's key."""


def own_name(column: str) -> str:
    """FOCUS's own name of a column."""
    return NAMES.get(column.replace("_", "").lower(), column)


class Columns(dict[str, str]):
    """An export's columns with their types, and keys of its tags: None where they were not asked for.

    ``same`` are texts, in SQL, that columns have in every line, ``small`` binary numbers that are below a thousand in
    every line, and ``told`` columns with what one tag says. Where there are no ``machines`` no line is of one.
    """

    tags: frozenset[str] | None = None
    same: Mapping[str, str] = {}
    small: frozenset[str] = frozenset()
    machines: bool = True
    told: Mapping[str, str] = {}

    @property
    def few(self) -> frozenset[str]:
        """The columns of few texts, as a query names them: lines are added up by them as they stand."""
        flat = [name for name in self if name in FEW or name.startswith("x_")]
        return frozenset(quote_name(name) for name in (*flat, *self.told.values()))

    def read_by(self, *values: str) -> list[str]:
        """The columns that some values are read from, as a query names them."""
        names = (quote_name(name) for name in (*self, *self.told.values()))
        return [name for name in names if any(name in value for value in values)]


def text_of(columns: Columns, name: str) -> str:
    """A column as text."""
    if name in columns.same:
        return columns.same[name]
    return f"CAST({quote_name(name)} AS VARCHAR)" if name in columns else "NULL"


def moment_of(columns: Columns, name: str) -> str:
    """A column as a UTC time without its zone. Text and times with a zone cost a conversion each: text in UTC is read
    without one. Text without a zone is UTC: DuckDB would read it in the zone that an earlier row named."""
    kind = columns[name]
    if kind.startswith("TIMESTAMP") and "ZONE" not in kind:
        return f'"{name}"'
    at = f'TRY_CAST("{name}" AS TIMESTAMPTZ)'
    if kind == "VARCHAR":  # Without seconds a time is none to DuckDB.
        whole = f"regexp_replace(\"{name}\", '^(.{{10}}[T ][0-9]{{2}}:[0-9]{{2}})(Z|[+-].*)?$', '\\1:00\\2')"
        leap = f"regexp_replace(\"{name}\", ':60', ':59')"
        at = f"COALESCE({at}, TRY_CAST({whole} AS TIMESTAMPTZ), TRY_CAST({leap} AS TIMESTAMPTZ))"
        plain = f'strlen("{name}") = 19 OR (strlen("{name}") = 20 AND suffix("{name}", \'Z\'))'
        plain = f"{plain} OR regexp_full_match(\"{name}\", ' *[0-9/-]+([T ][0-9:. ]*)?')"
        bare = f"regexp_replace(\"{name}\", '^(.{{10}}[T ][0-9]{{2}}:[0-9]{{2}})$', '\\1:00')"
        read = ", ".join(f"TRY_CAST({text} AS TIMESTAMP)" for text in (f'"{name}"', bare, leap))
        utc = f"CASE WHEN {plain} THEN COALESCE({read}) END"
        return f"COALESCE({utc}, make_timestamp(epoch_us({at})))"
    return f"make_timestamp(epoch_us({at}))"


def read_once(moment: str) -> str:
    """A time that a filter asks for too. A conversion is not repeated there: DuckDB keeps what rests on chance in its
    place. A column as it stands is, for its statistics leave out whole parts of a file."""
    return (
        moment if moment.startswith('"') else f"COALESCE({moment}, CASE WHEN random() < -1 THEN TIMESTAMP 'epoch' END)"
    )


def tag_of(columns: Columns, keys: Sequence[str], *, blank: bool = True) -> str:
    """The first of some tags that a row has, however its tags are written; or NULL. Of several spellings one that is
    ``blank`` may stand for none."""
    flat = [text_of(columns, name) for name in (f"x_{key}" for key in keys) if name in columns]
    names = [name for name in tag_names(keys) if columns.tags is None or name in columns.tags]
    if columns.told:
        flat += [quote_name(columns.told[name]) for name in names]
    else:
        flat += _tags_of(columns.get("Tags", ""), [_quoted(name) for name in names])
    flat = flat if blank else [f"NULLIF({value}, '')" for value in flat]
    return f"COALESCE({', '.join(flat)})" if flat else "NULL"


def tag_names(keys: Sequence[str]) -> list[str]:
    """Tags of some keys, as exports may name them."""
    return [f"{prefix}{key}" for key in keys for prefix in _PREFIXES]


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


def tag_value(columns: Columns, name: str) -> str:
    """What one tag says, of tags in text."""
    return _tags_of(columns["Tags"], [_quoted(name)])[0]


def tag_keys_query(columns: Columns) -> str:
    """Each key of tags, once, of a table that is to follow: few of the many spellings are there, and each costs a
    reading of all tags. Empty where nothing is gained by that."""
    kind = columns.get("Tags", "")
    if kind.startswith("MAP") and not kind.endswith("[]"):
        keys = 'map_keys("Tags")'
    elif kind in ("VARCHAR", "JSON") or (kind.startswith("STRUCT") and not kind.endswith("[]")):
        keys = f"json_keys({_json_of_tags(kind)})"
    else:
        return ""
    return f"SELECT DISTINCT unnest({keys}) FROM"


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
    wide = f"TRY_CAST({_exact(columns, name)} AS {kind})"
    if columns[name] != "VARCHAR" or width <= 18:
        return wide
    # Up to nine letters without an exponent are no more digits, which is sooner known than the digits themselves.
    short = f'strlen("{name}") < 10 AND NOT contains("{name}", \'e\') AND NOT contains("{name}", \'E\')'
    few = f"({short} OR regexp_full_match(\"{name}\", '-?[0-9]{{1,9}}([.][0-9]{{1,9}})?'))"
    return f'CASE WHEN {few} THEN CAST(TRY_CAST("{name}" AS DECIMAL(18, 9)) AS {kind}) ELSE {wide} END'


def halves_of(columns: Columns, name: str) -> tuple[str, str]:
    """A column as a narrow decimal, and as a wide one where that may have none for it; empty where it has not.

    A narrow decimal is made and added up sooner, and has the same digits.
    """
    column, kind = quote_name(name), columns.get(name, "")
    if kind.startswith("DECIMAL"):
        width, places = map(int, kind[8:-1].split(","))
        if width <= NARROW and places <= PLACES:
            return column, ""
    if kind not in ("VARCHAR", *BINARY):
        return number_of(columns, name), ""
    exact = _exact(columns, name)
    wide = "" if name in columns.small else f"TRY_CAST({exact} AS DECIMAL(38, {PLACES}))"
    return f"TRY_CAST({exact} AS DECIMAL({NARROW}, {PLACES}))", wide


def _exact(columns: Columns, name: str) -> str:
    """A column to make decimals of: a number of 32 bits as its text, for DuckDB would reckon with 32 bits."""
    column = quote_name(name)
    return f"CAST({column} AS VARCHAR)" if columns.get(name) == "FLOAT" else column

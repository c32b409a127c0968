"""A FOCUS export (1.0 to 1.2, CSV or Parquet) as a bill, read by DuckDB. ``BilledCost`` is what sums.

What real exports do is taken as it is: ``NULL`` as text, times without a zone (UTC), columns more or fewer, tags as
JSON or as a map. A row that cannot be counted is a finding, and the bill reaches only to where the first such begins.
FOCUS: https://focus.finops.org/focus-specification
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pilotlight.adapters.bills.exports import local_files
from pilotlight.adapters.objects import Objects
from pilotlight.errors import BadInput
from pilotlight.facts.bill import Bill, BilledDay
from pilotlight.facts.workload import Finding

if TYPE_CHECKING:
    import duckdb

NEEDED = ("BilledCost", "ChargePeriodStart", "ChargePeriodEnd")
TEAM_TAGS = ("pilotlight.dev/team", "team", "Team", "user:team", "user:Team")
POOL_TAGS = (
    "pilotlight.dev/pool", "eks:nodegroup-name", "aws:eks:nodegroup-name", "goog-k8s-node-pool-name",
    "aks-managed-poolName", "karpenter.sh/nodepool",
)  # fmt: skip
_OPTIONAL = ("BillingCurrency", "ServiceName", "ChargeCategory")
CURRENCY = "USD"
MEMORY = "256MB"
DAY_US = 86_400_000_000

DOUBTS = {
    1: "BilledCost is missing or no number",
    2: "ChargePeriodStart or ChargePeriodEnd is missing or no time",
    3: f"BillingCurrency is not {CURRENCY}",
}
"""Why rows cannot be counted, by the number that the query gives it; 0 is none."""


class _Group(NamedTuple):
    """Rows of one day, team, pool, service and doubt. ``reach`` is the latest end of usage of at most a day."""

    day: date | None
    team: str
    pool: str
    service: str
    doubt: int
    usd: Decimal | None
    rows: int
    first: datetime | None
    reach: datetime | None


class FocusBills:
    """The Bills port of an export. ``pools`` are the policy's names by what the cloud calls its node groups;
    ``objects`` reads an export that lies in a cloud's bucket."""

    def __init__(self, uri: str, pools: Mapping[str, str], objects: Objects | None = None) -> None:
        self._uri, self._pools, self._objects = uri, dict(pools), objects or Objects()

    def read(self, start: datetime, end: datetime) -> Bill:
        """The rows of the period by day, team, pool and service. A file that is no export is a finding.

        A row whose charge period is longer than a day, as a month's fee, belongs to the day on which it begins.
        """
        try:
            import duckdb
        except ImportError:
            raise BadInput("focus needs the package duckdb; run pip install 'pilotlight[bills]'") from None
        source = "focus"  # Wherever it lies: the same days under another address are not billed twice.
        with (
            local_files(self._uri, self._objects) as files,
            duckdb.connect(config={"threads": 2, "memory_limit": MEMORY}) as db,
        ):
            db.execute("SET TimeZone='UTC'; SET preserve_insertion_order=false")
            try:
                columns = _open(db, files)
                missing = [name for name in NEEDED if name not in columns]
                if missing:
                    return Bill(source=source, findings=(_finding(f"columns are missing: {', '.join(missing)}"),))
                return self._sum(db, columns, source, start, end)
            except duckdb.Error as error:
                first = str(error).partition("\n")[0].replace(str(files[0].parent), "")
                return Bill(source=source, findings=(_finding(f"cannot be read: {first[:200]}"),))

    def _sum(
        self, db: "duckdb.DuckDBPyConnection", columns: Mapping[str, str], source: str, start: datetime, end: datetime
    ) -> Bill:
        period = {"start": start.astimezone(UTC).replace(tzinfo=None), "end": end.astimezone(UTC).replace(tzinfo=None)}
        groups = [_Group(*row) for row in db.execute(_query(columns), period).fetchall()]
        doubts = Counter[int]()
        for group in groups:
            doubts[group.doubt] += group.rows
        reached = [group.reach.replace(tzinfo=UTC) for group in groups if group.reach is not None]
        # A row that is missing makes its day look cheaper than it was; without a time it may belong to any.
        bounds = [group.first.replace(tzinfo=UTC) if group.first else start for group in groups if group.doubt]
        return Bill(
            source=source,
            days=tuple(self._row(group) for group in groups if not group.doubt),
            horizon=min([max(reached), *bounds, end]) if reached else None,
            findings=tuple(_finding(f"{doubts[n]} rows: {why}") for n, why in DOUBTS.items() if doubts[n]),
        )

    def _row(self, group: _Group) -> BilledDay:
        assert group.day is not None
        assert group.usd is not None
        pool = self._pools.get(group.pool, group.pool)
        return BilledDay(day=group.day, usd=group.usd, team=group.team, pool=pool, service=group.service)


def _open(db: "duckdb.DuckDBPyConnection", files: Sequence[Path]) -> dict[str, str]:
    """Make the table ``export`` of the files; its columns with their types."""
    names = [str(file) for file in files]
    if all(name.endswith(".parquet") for name in names):
        relation = db.read_parquet(names, union_by_name=True)
    else:
        relation = db.read_csv(
            names,  # type: ignore[arg-type]
            header=True,
            all_varchar=True,
            na_values=["NULL", ""],
            quotechar='"',
            escapechar='"',
            union_by_name=True,
        )
    relation.create_view("export")
    return {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


def _query(columns: Mapping[str, str]) -> str:
    """The sums of the rows as they are counted, from whatever columns there are, in one pass."""
    text = {name: f'CAST("{name}" AS VARCHAR)' if name in columns else "NULL" for name in _OPTIONAL}
    return f"""
        WITH charge AS (SELECT
            TRY_CAST("BilledCost" AS DECIMAL(38, 15)) AS usd,
            {_moment(columns, "ChargePeriodStart")} AS since,
            {_moment(columns, "ChargePeriodEnd")} AS until,
            COALESCE({text["BillingCurrency"]}, '{CURRENCY}') AS currency,
            COALESCE({_tag(columns, TEAM_TAGS)}, '') AS team,
            COALESCE({_tag(columns, POOL_TAGS)}, '') AS pool,
            COALESCE({text["ServiceName"]}, '') AS service,
            COALESCE({text["ChargeCategory"]}, 'Usage') = 'Usage' AS usage
        FROM export)
        SELECT CAST(since AS DATE), team, pool, service,
            CASE WHEN since IS NULL OR until IS NULL THEN 2 WHEN usd IS NULL THEN 1
                 WHEN currency <> '{CURRENCY}' THEN 3 ELSE 0 END AS doubt,
            sum(usd), count(*), min(since),
            max(until) FILTER (WHERE usage AND epoch_us(until) - epoch_us(since) <= {DAY_US})
        FROM charge WHERE since IS NULL OR (since >= $start AND since < $end)
        GROUP BY ALL ORDER BY ALL"""


def _moment(columns: Mapping[str, str], name: str) -> str:
    """A column as a UTC time without its zone. Text and times with a zone cost a conversion each."""
    kind = columns[name]
    if kind.startswith("TIMESTAMP") and "ZONE" not in kind:
        return f'"{name}"'
    return f'make_timestamp(epoch_us(TRY_CAST("{name}" AS TIMESTAMPTZ)))'


def _tag(columns: Mapping[str, str], keys: Sequence[str]) -> str:
    """The first of some tags that a row has, however its tags are written; or NULL."""
    flat = [f'CAST("{name}" AS VARCHAR)' for name in (f"x_{key}" for key in keys) if name in columns]
    kind = columns.get("Tags", "")
    if kind.startswith("MAP"):
        flat += [f"CAST(\"Tags\"['{key}'] AS VARCHAR)" for key in keys]
    elif kind in ("VARCHAR", "JSON"):
        flat += [f'json_extract_string(TRY_CAST("Tags" AS JSON), \'$."{key}"\')' for key in keys]
    return f"COALESCE({', '.join(flat)})" if flat else "NULL"


def _finding(message: str) -> Finding:
    return Finding(subject="export", code="bill-uncounted", message=message)

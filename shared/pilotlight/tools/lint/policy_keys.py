"""Keys of the policy file, each with what its code says of it, in three tiers: start, often, rarely."""

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from msgspec import NODEFAULT
from msgspec import inspect as kinds

from pilotlight.facts.policy import Policy

Tier = Literal["start", "often", "rarely"]

START = (
    "version",
    "value_of_wait",
    "pools.NAME.cloud",
    "pools.NAME.instance_type",
    "pools.NAME.capacity_type",
    "pools.NAME.labels",
    "pools.NAME.taints",
    "pools.NAME.max",
    "classes.NAME.max_runtime",
    "caps.usd_per_hour",
    "budgets[].name",
    "budgets[].usd",
)
"""The keys that a first policy is written of."""
OFTEN = re.compile(
    r"pools\.NAME\.(zones|cluster_pool|min|mode|idle_timeout|spares.*|renew.*)"
    r"|classes\.NAME\.(capacity_types|fallback|gpu_models|idle_timeout|max_idle_timeout|wait_scale|may_move|hold)"
    r"|caps\.(nodes|gpus|approve_over.*|ten_minutes.*)|budgets\[\]\.(scope.*|period|timezone|hard|ladder.*)"
    r"|rules.*|claims.*|default_team|alerts\.channels\.NAME\.(kind|\w+_env|chat|min_severity|teams)"
    r"|prices\.(files|overrides|max_age_days)|(pools|classes|caps|budgets|alerts|prices)(\.channels)?"
)
"""The keys that most policies come to, and the tables that hold keys of the first two tiers."""
_FIELD = re.compile(r"^    (\w+): .*?(?:  # (?!type:|fmt:)(.*))?$")


class Key(NamedTuple):
    """A key by its path: what it is, and what it is where it is left out."""

    path: str
    told: str
    default: str

    @property
    def tier(self) -> Tier:
        """How soon somebody needs it."""
        return "start" if self.path in START else "often" if OFTEN.fullmatch(self.path) else "rarely"


def policy_keys() -> tuple[Key, ...]:
    """Every key that a policy may hold, tables among them, as the file's order has them."""
    return tuple(_keys(kinds.type_info(Policy), ""))


def _keys(kind: kinds.Type, path: str) -> Iterator[Key]:
    match kind:
        case kinds.Metadata():
            yield from _keys(kind.type, path)
        case kinds.StructType():
            for field in kind.fields:
                at = f"{path}.{field.encode_name}" if path else field.encode_name
                yield Key(at, _comments(kind.cls).get(field.name, ""), _default(field))
                yield from _keys(field.type, at)
        case kinds.DictType():
            yield from _keys(kind.value_type, f"{path}.NAME")
        case kinds.VarTupleType():
            yield from _keys(kind.item_type, f"{path}[]")
        case kinds.UnionType():
            for each in kind.types:
                yield from _keys(each, path)


def _default(field: kinds.Field) -> str:
    """What it is where it is left out, as the file would write it; empty where that is a table or nothing."""
    value = field.default
    if value is NODEFAULT:
        return "required" if field.required else ""
    if isinstance(value, bool):
        return str(value).lower()
    plain = isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    if plain:
        return f"[{', '.join(value)}]" if value else ""
    return str(value) if value is not None and not hasattr(value, "__struct_fields__") and value != "" else ""


@cache
def _comments(cls: Any) -> Mapping[str, str]:
    """The comment beside each field of a struct, or on the line above it; those of its base come first."""
    found: dict[str, str] = {}
    for base in reversed([one for one in cls.__mro__ if one.__module__.startswith("pilotlight.")]):
        above = ""
        for line in inspect.getsource(base).splitlines():
            field = _FIELD.match(line)
            if field is not None and (said := field.group(2) or above):
                found[field.group(1)] = said
            above = line.strip().removeprefix("# ") if line.startswith("    # ") else ""
    return found

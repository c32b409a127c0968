"""Expressions of admission policies, evaluated without a control plane."""

from collections.abc import Mapping
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from manifests import Json


def refusals(policy: Json, before: Json | None, after: Json, param: Json | None = None) -> list[str]:
    """The messages of a policy's validations that refuse an update, or where nothing was before, what is made; of one
    with parameters, for one of them.
    """
    request = {"operation": "CREATE" if before is None else "UPDATE", "name": after["metadata"].get("name", "")}
    known: dict[str, Any] = {"object": json_to_cel(after), "request": json_to_cel(request)}
    known |= {} if before is None else {"oldObject": json_to_cel(before)}
    known |= {} if param is None else {"params": json_to_cel(param)}
    variables = celpy.celtypes.MapType({})
    for variable in policy["spec"].get("variables", ()):
        name = celpy.celtypes.StringType(variable["name"])
        variables[name] = value_of(variable["expression"], {**known, "variables": variables})
    validations = policy["spec"]["validations"]
    return [v["message"] for v in validations if not value_of(v["expression"], {**known, "variables": variables})]


def value_of(expression: str, known: Mapping[str, Any] | None = None) -> Any:
    """What an expression comes to."""
    environment = celpy.Environment()
    return environment.program(environment.compile(expression)).evaluate(dict(known or {}))

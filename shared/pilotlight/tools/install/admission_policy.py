"""Admission policies that limit what our account changes of nodes and pods, with the policy's pools written into them.

The pools are a list of CEL strings inside the policy itself, and no parameter: an API server looks for parameters
before it looks whose request it is, so that a missing one refuses every change of every node by everybody. Evictions
alone have parameters, the pods and nodes themselves, and are asked only where they carry our label.
"""

import re
from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]

_PLAIN = re.compile(r"[A-Za-z0-9._/-]")
_STRING = r"'(?:[A-Za-z0-9._/-]|\\U[0-9a-f]{8})*'"
_LIST = re.compile(rf"\[(?:{_STRING}(?:, ?{_STRING})*)?\]")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""Any other name is no label of a node."""
_ESCAPED = re.compile(r"\\U([0-9a-f]{8})")


def cel_list(names: Iterable[str]) -> str:
    """Names as a CEL list of strings. All but plain characters are escaped: no name ends its string or reads as CEL."""
    return f"[{', '.join(map(_cel_string, names))}]"


def _cel_string(name: str) -> str:
    return "'" + "".join(c if _PLAIN.fullmatch(c) else f"\\U{ord(c):08x}" for c in name) + "'"


def names_of(expression: str) -> tuple[str, ...] | None:
    """The names of a list as ``cel_list`` writes it; None for any other expression."""
    if not _LIST.fullmatch(expression.strip()):
        return None
    found = re.findall(_STRING, expression)
    return tuple(_ESCAPED.sub(lambda code: chr(int(code[1], 16)), each[1:-1]) for each in found)


OURS = "system:serviceaccount:pilotlight:pilotlight"
"""Our account, as requests name it."""


def limit_to(objects: Iterable[Object], pools: Iterable[str], accounts: Iterable[str] = ()) -> None:
    """Write the pools into the policies among these objects; ``accounts`` are users that they limit beside our own, or
    let do what nobody else may.
    """
    more = sorted(set(accounts))
    for each in objects:
        if each["kind"] == "ValidatingAdmissionPolicy":
            if more:
                [whose] = each["spec"]["matchConditions"]
                ours = f"request.userInfo.username in {cel_list([OURS, *more])}"
                whose["expression"] = f"!({ours})" if whose["name"].startswith("not-") else ours
            for variable in each["spec"].get("variables", ()):
                if variable["name"] == "pools":
                    variable["expression"] = cel_list(sorted(set(pools)))
        elif each["kind"] == "ValidatingAdmissionPolicyBinding":
            selector = each["spec"].get("paramRef", {}).get("selector", {})
            for term in selector.get("matchExpressions", ()):
                term["values"] = sorted({name for name in pools if _LABEL_VALUE.fullmatch(name)}) or [""]

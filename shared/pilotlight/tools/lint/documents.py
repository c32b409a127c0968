"""A folder's files to what is wrong in them. A file that cannot be read is a fault of its own; the others are read."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from pilotlight.codec.bounded_yaml import load_all
from pilotlight.tools.lint.autoscaler_rules import autoscaler_rules
from pilotlight.tools.lint.fault import Lint, Site
from pilotlight.tools.lint.manifest_objects import Found
from pilotlight.tools.lint.promql_rules import promql_rules
from pilotlight.tools.lint.shell_rules import shell_rules
from pilotlight.tools.lint.workload_rules import workload_rules

MANIFESTS, SCRIPTS, QUERIES = (".yaml", ".yml", ".json"), (".sh", ".bash"), (".promql",)
READ = (*MANIFESTS, *SCRIPTS, *QUERIES)
"""Endings of the files that are read."""
_QUERIES = ("expr", "query", "metricsQuery", "seriesQuery")
_NESTED = (".yaml", ".yml", ".json", ".rules")


def lint(texts: Mapping[str, str], site: Site) -> tuple[Lint, ...]:
    """Faults of these files, by their names; in the order of the files."""
    out: list[Lint] = []
    objects: list[Found] = []
    for file, text in texts.items():
        if file.endswith(SCRIPTS):
            out += shell_rules(file, text)
        elif file.endswith(QUERIES):
            out += promql_rules(file, text)
        elif file.endswith(MANIFESTS):
            try:
                found = [Found(file, each) for each in _documents(text)]
            except (yaml.YAMLError, ValueError, RecursionError) as error:
                out.append(_unread(file, text, error))
                continue
            objects += found
            for each in found:
                for query in _queries(each.value):
                    out += promql_rules(each.where, query)
    out += workload_rules(objects, site)
    out += autoscaler_rules(objects, site)
    order = {file: n for n, file in enumerate(texts)}
    return tuple(sorted(dict.fromkeys(out), key=lambda each: (order.get(_file(each, texts), 0), each.where, each.rule)))


def _file(found: Lint, texts: Mapping[str, str]) -> str:
    return next((file for file in texts if found.where == file or found.where.startswith(f"{file}:")), "")


def _documents(text: str) -> Iterator[Mapping[str, Any]]:
    """Every mapping; a List's items one by one."""
    for each in load_all(text):
        if isinstance(each, Mapping):
            inside = each.get("items") if str(each.get("kind", "")).endswith("List") else None
            yield from ([one for one in inside if isinstance(one, Mapping)] if isinstance(inside, list) else [each])


def _queries(value: Any) -> Iterator[str]:
    """PromQL wherever it stands: rules, dashboards, triggers, adapters, and files within a ConfigMap."""
    if isinstance(value, Mapping):
        for key, inside in value.items():
            if isinstance(inside, str) and key in _QUERIES:
                yield inside
            elif isinstance(inside, str) and str(key).endswith(_NESTED):
                yield from _inside(inside)
            else:
                yield from _queries(inside)
    elif isinstance(value, list):
        for each in value:
            yield from _queries(each)


def _inside(text: str) -> Iterator[str]:
    try:
        for each in load_all(text):
            yield from _queries(each)
    except (yaml.YAMLError, ValueError, RecursionError):
        return


def _unread(file: str, text: str, error: Exception) -> Lint:
    fix = "render the template first (helm template)" if "{{" in text else "mend it"
    why = " ".join(str(getattr(error, "problem", None) or error).split())
    return Lint(rule="unread", level="warning", where=file, what=f"cannot be read: {why}", fix=fix)

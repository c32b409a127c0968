"""Helm 4's own code, in a process of the venv that has it: calls as JSON on stdin, their answers as JSON on stdout.

A call is ``[what, arguments]``; an answer is ``{"value": ...}`` or ``{"error": "..."}``.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import helm_python as helm

CONFIG = ("kubeconfig_path", "namespace")


def _render(chart: str, values: dict[str, Any], **options: Any) -> dict[str, str]:
    with helm.Chart.load(chart) as loaded:
        found: dict[str, str] = loaded.render(values, **options)
        return found


def _package(chart: str, destination: str) -> str:
    return str(helm.package(chart, destination=destination))


def _release(what: str, **options: Any) -> Any:
    where = {name: options.pop(name) for name in CONFIG}
    with helm.Config(**where) as config:
        return getattr(config, what)(**options)


CALLS: dict[str, Callable[..., Any]] = {"lint": helm.lint, "render": _render, "package": _package, "release": _release}


def _answer(what: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": CALLS[what](**arguments)}
    except helm.HelmError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    json.dump([_answer(what, arguments) for what, arguments in json.load(sys.stdin)], sys.stdout)

"""Grafana's dashboards, the PrometheusRule and Cloud Monitoring's alerts, written from one description.

A panel is a title, a unit and queries over what Pilotlight exports (``pilotlight.facts.alerts.figures``) and what
infra/prometheus/rules.yaml records of GPUs. ``python scripts/dashboards.py`` writes the files anew.
"""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
GRAFANA, PROMETHEUS = ROOT / "infra" / "grafana", ROOT / "infra" / "prometheus"
GOOGLE = ROOT / "infra" / "terraform" / "google"
SECONDS = {"s": 1, "m": 60, "h": 3600}
SEVERITY = {"critical": "CRITICAL", "warning": "WARNING", "info": "WARNING"}
"""Cloud Monitoring's words for ours."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF = 'cluster=~"$cluster"'


class Panel(NamedTuple):
    """One graph: what it shows, in which unit of Grafana's, by which queries with their legends."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]


BOARDS: dict[str, tuple[str, tuple[Panel, ...]]] = {
    "pilotlight-money": (
        "Pilotlight: dollars and budgets",
        (
            Panel(
                "Spent of each budget",
                "percentunit",
                (
                    (
                        f"max by (cluster, budget) (pilotlight_budget_spent_usd{{{OF}}}) / "
                        f"max by (cluster, budget) (pilotlight_budget_limit_usd{{{OF}}})",
                        "{{cluster}} {{budget}}",
                    ),
                ),
            ),
            Panel(
                "Left for purchases",
                "currencyUSD",
                ((f"min by (cluster, budget) (pilotlight_budget_left_usd{{{OF}}})", "{{cluster}} {{budget}}"),),
            ),
            Panel(
                "Held, spent and forecast",
                "currencyUSD",
                (
                    (f"max by (cluster, budget) (pilotlight_budget_held_usd{{{OF}}})", "held {{budget}}"),
                    (f"max by (cluster, budget) (pilotlight_budget_spent_usd{{{OF}}})", "spent {{budget}}"),
                    (f"max by (cluster, budget) (pilotlight_budget_forecast_usd{{{OF}}})", "forecast {{budget}}"),
                ),
            ),
            Panel(
                "Dollars an hour of what is lit",
                "currencyUSD",
                (
                    (f"max by (cluster) (pilotlight_usd_per_hour{{{OF}}})", "{{cluster}}"),
                    (f"max by (cluster) (pilotlight_nodes_unpriced{{{OF}}}) > 0", "nodes not priced {{cluster}}"),
                ),
            ),
            Panel(
                "Today by team",
                "currencyUSD",
                (
                    (
                        f"sum by (team) (max by (cluster, pool, team) (pilotlight_metered_today_usd{{{OF}}}))",
                        "{{team}}",
                    ),
                ),
            ),
            Panel(
                "Today by pool",
                "currencyUSD",
                (
                    (
                        f"sum by (pool) (max by (cluster, pool, team) (pilotlight_metered_today_usd{{{OF}}}))",
                        "{{pool}}",
                    ),
                ),
            ),
            Panel(
                "Price of a node",
                "currencyUSD",
                ((f"max by (cluster, pool) (pilotlight_price_usd_per_hour{{{OF}}})", "{{cluster}} {{pool}} an hour"),),
            ),
        ),
    ),
    "pilotlight-gpus": (
        "Pilotlight: GPUs paid for and used",
        (
            Panel(
                "GPUs that are there and GPUs that work",
                "short",
                (("sum(gpu_nodes:gpus:sum)", "there"), ("sum(gpu:busy:ratio)", "busy")),
            ),
            Panel(
                "Nodes that are paid for, by pool",
                "short",
                ((f"max by (cluster, pool) (pilotlight_nodes{{{OF}}})", "{{cluster}} {{pool}}"),),
            ),
            Panel("Pods that wait", "short", ((f"max by (cluster) (pilotlight_pods_waiting{{{OF}}})", "{{cluster}}"),)),
            Panel("Share of spot", "percentunit", (("spot_nodes:gpus:sum / gpu_nodes:gpus:sum", "spot"),)),
            Panel("Busy, by GPU", "percentunit", (("gpu:busy:ratio", "{{node}} {{gpu}}"),)),
            Panel("Memory, by GPU", "percentunit", (("gpu:memory_used:ratio", "{{node}} {{gpu}}"),)),
            Panel(
                "How long 95 of 100 pods wait, by phase",
                "s",
                (
                    (
                        "histogram_quantile(0.95, sum by (phase, le) "
                        f"(rate(pilotlight_wait_seconds_bucket{{{OF}}}[1d])))",
                        "{{phase}}",
                    ),
                ),
            ),
            Panel(
                "Purchases refused today, by why",
                "short",
                (
                    (
                        f"sum by (cluster, kind) (increase(pilotlight_refusals_total{{{OF}}}[1d]))",
                        "{{cluster}} {{kind}}",
                    ),
                ),
            ),
            Panel(
                "Purchases on their way, interruptions under way",
                "short",
                (
                    (f"max by (cluster) (pilotlight_purchases_in_flight{{{OF}}})", "purchases {{cluster}}"),
                    (f"max by (cluster) (pilotlight_interruptions_open{{{OF}}})", "interruptions {{cluster}}"),
                ),
            ),
            Panel(
                "How long a new node takes until a pod works, by step",
                "s",
                ((f"max by (cluster, pool, step) (pilotlight_first_work_seconds{{{OF}}})", "{{pool}} {{step}}"),),
            ),
        ),
    ),
    "pilotlight-health": (
        "Pilotlight: itself",
        (
            Panel(
                "Since nodes were counted",
                "s",
                ((f"time() - max by (cluster) (pilotlight_counted_timestamp_seconds{{{OF}}})", "{{cluster}}"),),
            ),
            Panel("Silent", "s", ((f"max by (cluster) (pilotlight_silent_seconds{{{OF}}})", "{{cluster}}"),)),
            Panel(
                "Open decisions and holds",
                "short",
                (
                    (f"max by (cluster) (pilotlight_decisions_open{{{OF}}})", "decisions {{cluster}}"),
                    (f"max by (cluster) (pilotlight_holds_open{{{OF}}})", "holds {{cluster}}"),
                ),
            ),
            Panel(
                "Paused", "short", ((f"max by (cluster, pool) (pilotlight_paused{{{OF}}})", "{{cluster}} {{pool}}"),)
            ),
            Panel(
                "Alerts that wait, and that were given up",
                "short",
                (
                    ("max by (channel) (pilotlight_alerts_waiting)", "waiting {{channel}}"),
                    ("max by (channel) (pilotlight_alerts_given_up)", "given up {{channel}}"),
                ),
            ),
            Panel(
                "Calls an hour, by what became of them",
                "short",
                (
                    (
                        f"3600 * sum by (call, outcome) (rate(pilotlight_calls_total{{{OF}}}[1h]))",
                        "{{call}} {{outcome}}",
                    ),
                ),
            ),
            Panel(
                "How long 95 of 100 looks take that make calls; looks taken again",
                "s",
                (
                    (
                        f"histogram_quantile(0.95, sum by (le) (rate(pilotlight_cycle_seconds_bucket{{{OF}}}[1d])))",
                        "seconds",
                    ),
                    (f"3600 * sum(rate(pilotlight_looks_again_total{{{OF}}}[1h]))", "again an hour"),
                ),
            ),
            Panel(
                "Decisions an hour, by verdict",
                "short",
                (
                    (
                        f"3600 * sum by (cluster, verdict) (rate(pilotlight_decisions_total{{{OF}}}[1h]))",
                        "{{cluster}} {{verdict}}",
                    ),
                ),
            ),
            Panel(
                "Objects that cannot be judged: errors an hour, by object and stage",
                "short",
                (
                    (
                        f"3600 * sum by (object, stage) (rate(pilotlight_isolated_errors_total{{{OF}}}[1h]))",
                        "{{object}} {{stage}}",
                    ),
                ),
            ),
            Panel(
                "Pods that tolerate homes which nobody gave them, an hour",
                "short",
                ((f"3600 * sum by (cluster) (rate(pilotlight_pods_taking_homes_total{{{OF}}}[1h]))", "{{cluster}}"),),
            ),
            Panel(
                "Operations on the state an hour",
                "short",
                (
                    (
                        f"3600 * sum by (cluster, operation) (rate(pilotlight_state_operations_total{{{OF}}}[1h]))",
                        "{{cluster}} {{operation}}",
                    ),
                ),
            ),
            Panel("Dead letters", "short", (("max(pilotlight_dead_letters)", "kept"),)),
            Panel(
                "Until the token ends",
                "s",
                ((f"min by (cluster) (pilotlight_credential_ends_timestamp_seconds{{{OF}}}) - time()", "{{cluster}}"),),
            ),
            Panel(
                "Age of prices",
                "s",
                ((f"max by (cluster, pool) (pilotlight_price_age_seconds{{{OF}}})", "{{cluster}} {{pool}}"),),
            ),
        ),
    ),
}
"""Each board's title and panels, by its name."""


def main() -> None:
    """Write every file anew."""
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(path.relative_to(ROOT))


def files() -> dict[Path, str]:
    """Files to write: each text by its path."""
    boards = {GRAFANA / f"{name}.json": json.dumps(_board(name), indent=2) + "\n" for name in BOARDS}
    return {
        **boards,
        PROMETHEUS / "prometheusrule.yaml": _rule(),
        GOOGLE / "alerts.json": json.dumps(_cloud(), indent=2) + "\n",
    }


def _board(name: str) -> dict[str, Any]:
    title, panels = BOARDS[name]
    choices = [
        {"name": "datasource", "type": "datasource", "query": "prometheus"},
        {
            "name": "cluster",
            "type": "query",
            "datasource": SOURCE,
            "query": "label_values(pilotlight_holds_open, cluster)",
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]
    return {
        "uid": name,
        "title": title,
        "tags": ["pilotlight"],
        "schemaVersion": 39,
        "time": {"from": "now-24h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": choices},
        "panels": [_panel(n, panel) for n, panel in enumerate(panels)],
    }


def _panel(n: int, panel: Panel) -> dict[str, Any]:
    return {
        "id": n + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": {"x": 12 * (n % 2), "y": 8 * (n // 2), "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + m), "expr": query, "legendFormat": legend, "datasource": SOURCE}
            for m, (query, legend) in enumerate(panel.queries)
        ],
    }


def _cloud() -> dict[str, Any]:
    """The alerts on our own figures as Cloud Monitoring takes them.

    Google's collectors keep ``cluster`` for the cluster that they run in: ours is ``exported_cluster`` there.
    """
    groups = yaml.safe_load((PROMETHEUS / "rules.yaml").read_text())["groups"]
    rules = next(group["rules"] for group in groups if group["name"] == "pilotlight-own")
    label = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
    return {
        rule["alert"]: {
            "query": rule["expr"].replace("by (cluster", "by (cluster, exported_cluster"),
            "duration": f"{int(rule['for'][:-1]) * SECONDS[rule['for'][-1]]}s",
            "severity": SEVERITY[rule["labels"]["severity"]],
            "documentation": label.sub(r"${metric_or_resource.label.\1}", rule["annotations"]["description"]),
        }
        for rule in rules
    }


def _rule() -> str:
    """rules.yaml as the Prometheus operator takes it."""
    labels = {"app.kubernetes.io/name": "pilotlight", "release": "kube-prometheus-stack"}
    made = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "pilotlight", "namespace": "pilotlight", "labels": labels},
        "spec": yaml.safe_load((PROMETHEUS / "rules.yaml").read_text()),
    }
    told = "# Written by scripts/dashboards.py from rules.yaml. Operators select rules by `release`: make it yours.\n"
    return told + yaml.safe_dump(made, sort_keys=False, width=120)


if __name__ == "__main__":
    main()

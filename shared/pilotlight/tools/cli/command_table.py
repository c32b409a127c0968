"""The table of commands: the module of each, its line in the help, its panel, and the few that the help names first.

It imports nothing, so that the help and completion of names answer at once.
"""

PANELS = {
    "start": "Start",
    "watch": "Watch",
    "act": "Act",
    "install": "Install",
    "prices": "Prices and odds",
    "gpus": "GPUs in use",
    "records": "Records",
    "lab": "Lab",
}
"""Panels of the help, each by the folder of its commands' modules."""

COMMANDS = {
    "start.init_command": {"init": "write a first policy from what the cluster shows"},
    "start.policy_commands": {
        "check": "what is wrong with a policy file, by path",
        "schema": "the policy file's JSON Schema, for editors",
    },
    "start.plan_command": {"plan": "what would be bought and released, and why; changes nothing"},
    "start.doctor_command": {"doctor": "what does not fit between policy, cluster and account, with its fix"},
    "start.demo_command": {"demo": "an hour of a small cluster, played in a minute"},
    "start.serve_command": {"serve": "every function and the live page on one port"},
    "start.lint_command": {"lint": "what costs GPUs in manifests, dashboards and scripts, with its fix"},
    "watch.status_command": {"status": "each cluster at a glance: lit, waiting, budgets, pauses"},
    "watch.pools_command": {"pools": "each pool: size, price, mode, last error"},
    "watch.gpus_command": {"gpus": "what GPUs are free, where, and what more would cost"},
    "watch.why_command": {"why": "past decisions about a pod, a node or a team"},
    "watch.budget_command": {"budget": "where each budget stands, and how its period will end"},
    "watch.alert_commands": {"alerts": "what was told to whom; try a channel; tell again"},
    "watch.queue_commands": {"queues": "how long the policy's queues are, and the workers they ask for"},
    "watch.shadow_commands": {"shadow": "its advice beside what was done instead"},
    "act.brake_commands": {
        "pause": "stop every effect at the next call",
        "resume": "take a pause back",
        "approve": "allow a purchase beyond approve_over",
    },
    "act.reconcile_command": {"reconcile": "one tick on a real cluster now; --dry-run only says it"},
    "act.send_command": {"send": "one event to the function that takes it"},
    "act.reclaim_commands": {"reclaim": "owners of idle GPUs: told, snoozed, woken"},
    "act.drill_command": {"drill": "take a node of a served world, as a cloud would"},
    "install.connect_command": {"connect": "an account of its own on a cluster, with a token that ends"},
    "install.handover_commands": {
        "takeover": "take pools over from another autoscaler",
        "handback": "give pools back as they were before takeover",
    },
    "install.uninstall_command": {"uninstall": "give every pool back and take all of it out of a cluster"},
    "install.placement_commands": {"lift": "take our taint off every node of a cluster"},
    "install.manifests_commands": {"manifests": "Kubernetes objects made from your policy"},
    "install.kueue_commands": {"kueue": "have Kueue's queues wait for our answer, or no more"},
    "install.show_command": {"show": "print a guide, a manifest or a sample that comes with it"},
    "install.notice_agent_command": {"notice-agent": "relay what this machine's cloud says of its end"},
    "prices.prices_command": {"prices": "write today's prices into a price file"},
    "prices.sizes_command": {"sizes": "GPU types that a cloud rents in a region"},
    "prices.spot_command": {"spot": "spot by type and zone: price, life, dollars a useful hour"},
    "prices.deadline_command": {"deadline": "what a job costs that must end in time"},
    "prices.commitments_command": {"commitments": "what to pay ahead, from metered hours"},
    "prices.whatif_command": {"whatif": "the articles' worked examples, recomputed"},
    "prices.cost_command": {"cost-of-self": "what Pilotlight itself costs a month"},
    "gpus.waste_command": {"waste": "GPUs that are held and not used, in dollars"},
    "gpus.runs_command": {"runs": "how long jobs run, by group: P50 and P90"},
    "gpus.preempt_command": {"preempt": "running pods that could give way; never acts"},
    "gpus.targets_command": {"targets": "fleet use and waits against a guide's targets"},
    "gpus.monitor_command": {"monitor": "serve what this node's GPUs do, as dcgm-exporter would"},
    "records.report_command": {"report": "a month's dollars by machine, pool, team and class"},
    "records.bill_command": {"bill": "a month's bill against the meter"},
    "records.audit_commands": {"audit": "prove that no decision was changed; export them"},
    "records.state_commands": {"state": "look at the state, or carry it to another store"},
    "lab.replay_command": {
        "replay": "your own trace of jobs under a policy, beside peers",
        "week": "a week of GPU jobs against the peers",
    },
    "lab.tune_command": {"tune": "dollars against waits for prices of waiting, and one advised"},
    "lab.trace_commands": {
        "synth": "draw a trace that is like a measured one",
        "stats": "measure a trace, naming no job and no person",
        "trace": "make a trace that replay reads",
    },
    "lab.conformance_command": {"conformance": "try a cloud's promises on your own sandbox"},
    "lab.world_command": {"world": "serve a cluster with its cloud and clock"},
}
"""By module, below this package: the commands that it registers, each with its line."""

FIRST = (
    *("init", "check", "plan", "doctor", "demo", "serve"),
    *("status", "pools", "gpus", "why", "budget", "alerts"),
    *("pause", "resume", "approve"),
    *("connect", "report"),
)
"""The commands of the help; the others stand behind ``--all``."""

ELSEWHERE = {
    "install": (
        "the chart installs it, from a clone. First make image builds the image and loads it into kind or k3d; for "
        "another cluster push it to a registry that its nodes pull from, and name that. Then helm install pilotlight "
        "infra/helm/pilotlight --namespace pilotlight --create-namespace --set image.repository=pilotlight "
        "--set image.tag=local --set image.pullPolicy=IfNotPresent --set cluster=CLUSTER --set-file policy=policy.yaml"
    ),
}
"""Words that people try and that are no commands, each with what to type instead."""


def module_of(name: str) -> str:
    """The module that registers a command, or empty."""
    return next((module for module, commands in COMMANDS.items() if name in commands), "")


def panel_of(name: str) -> str:
    """The panel that a command stands in."""
    return PANELS[module_of(name).partition(".")[0]]


def panels(every: bool) -> dict[str, dict[str, str]]:
    """The panels with their commands' lines: of every command, or of the first."""
    found: dict[str, dict[str, str]] = {panel: {} for panel in PANELS.values()}
    for module, commands in COMMANDS.items():
        shown = {name: line for name, line in commands.items() if every or name in FIRST}
        found[PANELS[module.partition(".")[0]]] |= shown
    return {panel: commands for panel, commands in found.items() if commands}

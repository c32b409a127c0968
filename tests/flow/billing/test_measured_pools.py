"""A rule on utilisation by telemetry: what billing_tick measured leads the next look, and an outage is said."""

from dataclasses import replace

from stage import Stage

from pilotlight.errors import Unavailable
from pilotlight.facts.limits.rule_policy import Rule, RuleSet, RuleUse, RuleWhen
from pilotlight.facts.messages import Tick
from pilotlight.facts.policy import ClassPolicy
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.cycle.planning import preview
from pilotlight.world.world_cluster import WorldCluster


class Read:
    """What the world's GPUs did, or nothing."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.down = stage, False

    def past(self, end_s: float) -> Telemetry:
        """Nothing is asked of it."""
        raise AssertionError("the use of pools is of now")

    def read(self, start_s: float, end_s: float, step_s: float) -> Telemetry:
        """The port's method."""
        if self.down:
            raise Unavailable("prometheus does not answer")
        assert isinstance(self.stage.deps.cluster, WorldCluster)
        return self.stage.deps.cluster.telemetry(start_s, end_s, step_s)


def test_a_rule_goes_by_what_was_measured_and_says_when_nothing_was() -> None:
    """Two nodes are held and do nothing: a third that idles goes by the rule; in an outage pods count."""
    quiet = Rule(
        name="quiet",
        when=RuleWhen(use=RuleUse(pools=("one",), below=0.3)),
        does=RuleSet(idle={"one": "release"}),
        cooldown=0,
    )
    stage = Stage(rules=(quiet,), classes={"batch": ClassPolicy(gpu_models="any", idle_timeout=3600)})
    read = Read(stage)
    stage.deps = replace(stage.deps, telemetry=read)
    for name, run_s in (("a", 90_000.0), ("b", 90_000.0), ("c", 3000.0)):
        stage.event(stage.submit(name, run_s=run_s))
    for job in (*stage.world.pending.values(), *stage.world.running.values()):
        job.busy_s = 0.0
    stage.wait(3000)
    read.down = True
    said = billing(stage.deps, Tick(cluster="c")).did
    assert "telemetry: absent: rules go by what pods hold: prometheus does not answer" in said
    stage.wait(240)
    stage.tick()
    assert stage.nodes("one") == 3
    read.down = False
    billing(stage.deps, Tick(cluster="c"))
    [idle] = [n for n in preview(stage.deps, releases=True)[1].nodes if n.verdict == "release"]
    assert idle.why.endswith("; rule quiet: 0% of 3 GPUs used by the world's activity")
    stage.tick()
    assert stage.nodes("one") == 2

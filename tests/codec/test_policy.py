"""The policy file: what it may say, and how what is wrong is told."""

import copy
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import BadPolicy
from pilotlight.tools.lint.policy_schema import policy_schema

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "examples" / "policy.yaml", *sorted((ROOT / "policies").glob("*.yaml"))]


def problems(text: str) -> list[str]:
    """Every problem of a policy, without the file's name."""
    with pytest.raises(BadPolicy) as refused:
        read_policy(text, "policy.yaml")
    assert all(p.startswith("policy.yaml") for p in refused.value.problems)
    return [p.removeprefix("policy.yaml").removeprefix(": ") for p in refused.value.problems]


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_files_that_come_with_the_project(path: Path) -> None:
    """The example and every preset are valid, for the reader and for the schema."""
    policy = read_policy(path.read_bytes(), path.name)
    assert {"t4", "a10g", "v100", "v100x4", "a100"} <= policy.pools.keys()
    assert policy.of_class("serving").capacity_types == ("on-demand",)
    jsonschema.validate(yaml.safe_load(path.read_text()), policy_schema())


def test_postures_differ_as_told() -> None:
    """From cost over balanced to performance a wait is worth more, and nodes idle longer."""
    cost, balanced, performance = (
        read_policy((ROOT / "policies" / f"{name}.yaml").read_bytes(), name)
        for name in ("cost", "balanced", "performance")
    )
    assert cost.wait("training") < balanced.wait("training") < performance.wait("training")
    longest = [preset.of_class("training").max_idle_timeout for preset in (cost, balanced, performance)]
    assert longest == sorted(set(longest))


VALUES = {
    "seconds": ("cooldown: 90", 90.0),
    "seconds with unit": ("cooldown: 90s", 90.0),
    "minutes": ("cooldown: 10m", 600.0),
    "hours": ("cooldown: 2h", 7200.0),
    "days": ("cooldown: 1d", 86_400.0),
    "half an hour": ("cooldown: 0.5h", 1800.0),
}


@pytest.mark.parametrize(("line", "seconds"), VALUES.values(), ids=VALUES.keys())
def test_durations(line: str, seconds: float) -> None:
    """Durations are text with a unit, or seconds."""
    assert read_policy(f"version: 1\n{line}", "p").cooldown == seconds


@pytest.mark.parametrize(("text", "gib"), [("40Gi", 40), ("40", 40), ("16384Mi", 16), ("20G", 19)])
def test_gpu_memory(text: str, gib: int) -> None:
    """Memory of a GPU is a quantity, or whole GiB."""
    policy = read_policy(f"version: 1\nclasses: {{training: {{min_gpu_memory: {text}}}}}", "p")
    assert policy.of_class("training").min_gpu_memory == gib


@given(st.decimals(min_value="0.0001", max_value=10_000, allow_nan=False, places=4))
def test_money_is_exact(amount: Decimal) -> None:
    """No sum of money passes through a binary float."""
    text = f"version: 1\nprices: {{overrides: {{g4dn.xlarge/spot: {amount}}}}}"
    assert str(read_policy(text, "p").prices.overrides["g4dn.xlarge/spot"]) == str(amount)


def test_times_of_day_need_no_quotes() -> None:
    """18:00 is a time of day, quoted or not."""
    day = "{name: day, when: {time: {start: 09:00, end: 18:00, timezone: America/New_York}}, set: {warm: {a: 1}}}"
    policy = read_policy(f"version: 1\npools: {{a: {{instance_type: x}}}}\nrules: [{day}]", "p")
    window = policy.rules[0].when.time
    assert window is not None
    assert (window.start, window.end) == ("09:00", "18:00")


POOL = "instance_type: g4dn.xlarge"
WINDOW = "name: w, when: {time: {start: '09:00', end: '18:00'}}"

WRONG = {
    "an unknown key with its likely meaning": (
        "pools: {a100: {instnce_type: p4d.24xlarge, " + POOL + "}}",
        "pools.a100.instnce_type: unknown key; did you mean instance_type?",
    ),
    "an unknown key at the top": ("pols: {}", "pols: unknown key; did you mean pools?"),
    "an unknown class": ("classes: {trainin: {}}", "classes.trainin: 'trainin' is not one of"),
    "a pool without type": ("pools: {a: {}}", "pools.a.instance_type: is missing"),
    "a list where a table should be": ("pools: [a]", "pools: must be a table of keys and values"),
    "a key without value": ("pools:", "pools: must be a table of keys and values"),
    "text where a number should be": (
        f"pools: {{a: {{{POOL}, max: many}}}}",
        "pools.a.max: 'many' is not a whole number",
    ),
    "half a node": (f"pools: {{a: {{{POOL}, max: 1.5}}}}", "pools.a.max: '1.5' is not a whole number"),
    "a label that YAML reads as true": (
        f"pools: {{a: {{{POOL}, labels: {{gpu: true}}}}}}",
        "pools.a.labels.gpu: is read as",
    ),
    "min over max": (f"pools: {{a: {{{POOL}, min: 3, max: 2}}}}", "pools.a.min: 3 is more than max 2"),
    "warm over max": (f"pools: {{a: {{{POOL}, spares: {{warm: 3}}, max: 2}}}}", "pools.a.spares.warm: 3 is more"),
    "a negative min": (f"pools: {{a: {{{POOL}, min: -1}}}}", "pools.a.min: -1 is negative"),
    "a taint of no effect": (
        f"pools: {{a: {{{POOL}, taints: [{{key: k, effect: NoSched}}]}}}}",
        "pools.a.taints[0].effect: 'NoSched' is not one of NoSchedule",
    ),
    "an absurd quantity": (
        f"pools: {{a: {{{POOL}, daemonsets: {{cpu: lots}}}}}}",
        "pools.a.daemonsets.cpu: 'lots' is not",
    ),
    "a DaemonSet's part of what nodes are not known to have": (
        f"pools: {{a: {{{POOL}, daemonsets: {{rdma/hca: 1}}}}}}",
        "pools.a.daemonsets.rdma/hca: is in no count of a node: list it in pools.a.slices",
    ),
    "one node pool under two names": (
        f"pools: {{a: {{{POOL}, cluster_pool: x}}, b: {{{POOL}, cluster_pool: x}}}}",
        "pools.b.cluster_pool: x is that of pool a too",
    ),
    "one NodePool under two clouds": (
        "pools: {a: {cloud: eks, instance_type: g, cluster_pool: 'karpenter:x'}, "
        "b: {cloud: aks, instance_type: g, cluster_pool: 'karpenter:x'}}",
        "pools.b.cluster_pool: x is that of pool a too",
    ),
    "one NodePool as a gate and bought for by claims": (
        f"pools: {{x: {{{POOL}}}, b: {{{POOL}, cluster_pool: 'karpenter:x'}}}}",
        "pools.b.cluster_pool: x is that of pool x too: one node pool has one owner",
    ),
    "flex-start that is kept lit": (
        "pools: {q: {cloud: gke, instance_type: a3, capacity_type: flex-start, min: 1}}",
        "pools.q.min: flex-start has no static count: write 0",
    ),
    "flex-start of another cloud": (
        "pools: {q: {cloud: eks, instance_type: p5, capacity_type: flex-start}}",
        "pools.q.capacity_type: flex-start is Google's: write cloud: gke",
    ),
    "what Karpenter is not asked for": (
        f"pools: {{a: {{{POOL}, cluster_pool: 'karpenter:gpu', min: 1}}}}",
        "pools.a.min: is nothing that Karpenter is asked for: it buys the nodes of this pool",
    ),
    "MIG behind a limit of Karpenter's": (
        f"pools: {{a: {{{POOL}, cluster_pool: 'karpenter:gpu', slices: {{nvidia.com/mig-1g.5gb: 7}}}}}}",
        "pools.a.slices.nvidia.com/mig-1g.5gb: cuts up GPUs, and Karpenter counts what a node shows",
    ),
    "time-slicing behind a limit of Karpenter's": (
        f"pools: {{a: {{{POOL}, cluster_pool: 'karpenter:gpu', slices: {{nvidia.com/gpu: 4}}}}}}",
        "pools.a.slices.nvidia.com/gpu: cuts up GPUs",
    ),
    "devices of DRA behind a limit of Karpenter's": (
        f"pools: {{a: {{{POOL}, cluster_pool: 'karpenter:gpu', slices: {{'claim:nvidia.com/gpu': 4}}}}}}",
        "pools.a.slices.claim:nvidia.com/gpu: cuts up GPUs",
    ),
    "a NodePool without a name": (
        f"pools: {{a: {{{POOL}, cluster_pool: 'karpenter:'}}}}",
        "pools.a.cluster_pool: '' is no NodePool's name: write karpenter:NAME",
    ),
    "serving on spot": (
        "classes: {serving: {capacity_types: [spot]}}",
        "classes.serving.capacity_types: serving never",
    ),
    "serving on spot by night": (
        f"rules: [{{{WINDOW}, set: {{capacity_types: {{serving: [spot]}}}}}}]",
        "rules[0].set.capacity_types.serving: serving never runs on spot",
    ),
    "a share over one": (
        "classes: {batch: {capacity_types: [spot, on-demand], max_spot_share: 50}}",
        "classes.batch.max_spot_share: 50 is no share",
    ),
    "a team's share below nothing": (
        "teams: {a: {max_spot_share: -1}}",
        "teams.a.max_spot_share: '-1' must be",
    ),
    "a share of spot without spot": (
        "classes: {batch: {max_spot_share: 0.5}}",
        "classes.batch.max_spot_share: changes nothing",
    ),
    "a share whose rest may run nowhere": (
        "classes: {batch: {capacity_types: [spot], max_spot_share: 0.5}}",
        "classes.batch.max_spot_share: leaves the rest nothing to run on",
    ),
    "nothing to fall back to": ("classes: {batch: {fallback: allow}}", "classes.batch.fallback: allow changes nothing"),
    "a duration without sense": ("cooldown: soon", "cooldown: 'soon' is no duration: write 90s, 10m, 2h or 1d"),
    "an endless duration": ("cooldown: inf", "cooldown: 'inf' must be a duration of 0 or more"),
    "a duration of ages": ("cooldown: 99999999d", "cooldown: '99999999d' is longer than 3650d"),
    "a duration beyond numbers": ("cooldown: 1e400", "cooldown: '1e400' is longer than 3650d"),
    "a duration that overflows": ("cooldown: 1e999999d", "cooldown: '1e999999d' must be a duration of 0 or more"),
    "a cap beyond numbers": ("caps: {usd_per_hour: 1e400}", "caps.usd_per_hour: '1e400' is more than 1,000,000,000"),
    "a pool without end": (f"pools: {{a: {{{POOL}, max: 10000000000}}}}", "pools.a.max: '10000000000' is more than"),
    "a negative cap": ("caps: {gpus: -4}", "caps.gpus: -4 is negative"),
    "a price of nothing": ("prices: {overrides: {a/spot: 0}}", "prices.overrides.a/spot: must be more than 0"),
    "a price of next to nothing": (
        "prices: {overrides: {a/spot: 1e-30}}",
        "prices.overrides.a/spot: '1e-30' is less than a billionth: write 0, or more",
    ),
    "a price of NaN": ("prices: {overrides: {a/spot: .nan}}", "prices.overrides.a/spot: '.nan' is not a number"),
    "a price of what": ("prices: {overrides: {a: 1}}", "prices.overrides.a: write it as TYPE/"),
    "a zone of Mars": (
        "rules: [{name: w, when: {time: {start: '09:00', end: '18:00', timezone: Mars/Base}}, set: {caps: {gpus: 1}}}]",
        "rules[0].when.time.timezone: 'Mars/Base' is no IANA",
    ),
    "25 o'clock": (
        "rules: [{name: w, when: {time: {start: '25:00', end: '18:00'}}, set: {caps: {nodes: 1}}}]",
        "rules[0].when.time.start: '25:00' is no time of day",
    ),
    "a warm pool that is not there": (
        f"pools: {{t4: {{{POOL}}}}}\nrules: [{{{WINDOW}, set: {{warm: {{t5: 1}}}}}}]",
        "rules[0].set.warm.t5: names no pool (known: t4)",
    ),
    "a window warmer than its pool is large": (
        f"pools: {{t4: {{{POOL}, max: 2}}}}\nrules: [{{{WINDOW}, set: {{warm: {{t4: 3}}}}}}]",
        "rules[0].set.warm.t4: 3 is more than max 2",
    ),
    "a ladder that goes down": (
        "budgets: [{name: a, usd: 1, ladder: [{at: 0.8, do: spot-only}, {at: 0.5, do: notify}]}]",
        "budgets[0].ladder[1].at: must be more than that of the step before it",
    ),
    "a ladder's step at nothing": (
        "budgets: [{name: a, usd: 1, ladder: [{at: 0, do: notify}]}]",
        "budgets[0].ladder[0].at: must be more than 0",
    ),
    "a budget that is no table": ("budgets: [5]", "budgets[0]: must be a table of keys and values"),
    "a budget of nothing": ("budgets: [{name: a}]", "budgets[0]: limits nothing: give it usd"),
    "two budgets of one name": (
        "budgets: [{name: a, usd: 1}, {name: b, usd: 1}, {name: b, usd: 2}]",
        "budgets[2].name: b names two budgets",
    ),
    "a budget whose name would be a path": ("budgets: [{name: a/b, usd: 1}]", "budgets[0].name: 'a/b' is no name"),
    "a budget of a pool that is not there": (
        "budgets: [{name: a, usd: 1, scope: {pool: t5}}]",
        "budgets[0].scope.pool.t5: names no pool",
    ),
    "a budget of two scopes": (
        "budgets: [{name: a, usd: 1, scope: {team: x, class: batch}}]",
        "budgets[0].scope: must name exactly one of team, class and pool",
    ),
    "a budget of a scope that is a word": (
        "budgets: [{name: a, usd: 1, scope: team}]",
        "budgets[0].scope: 'team' is not",
    ),
    "a budget a year": ("budgets: [{name: a, usd: 1, period: year}]", "budgets[0].period: 'year' is not one of day"),
    "a budget on Mars": ("budgets: [{name: a, usd: 1, timezone: Mars}]", "budgets[0].timezone: 'Mars' is no IANA"),
    "a basis of what may be lit at once": (
        "budgets: [{name: a, usd: 1, period: hour, basis: effective}]",
        "budgets[0].basis: is of dollars that are billed",
    ),
    "a basis of GPU-hours": (
        "budgets: [{name: a, gpu_hours: 1, basis: list}]",
        "budgets[0].basis: is of dollars that are billed",
    ),
    "a basis of a class": (
        "budgets: [{name: a, usd: 1, hard: false, scope: {class: batch}, basis: billed}]",
        "budgets[0].basis: is of dollars that are billed",
    ),
    "a basis that is none": ("budgets: [{name: a, usd: 1, basis: net}]", "budgets[0].basis: 'net' is not one of"),
    "a webhook without address": (
        "alerts: {channels: {chat: {kind: webhook}}}",
        "alerts.channels.chat.url_env: is missing",
    ),
}


@pytest.mark.parametrize(("text", "told"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_by_path(text: str, told: str) -> None:
    """Each problem is one line with its path, in plain words."""
    (problem,) = problems(f"version: 1\n{text}\n")
    assert problem.startswith(told)


NO_POLICY = {
    "nothing": ("", "is empty: begin with version: 1"),
    "a later version": ("version: 2", "version: '2' is not one of 1"),
    "no version": ("pools: {}", "version: is missing"),
    "a list": ("- 1", "must be a table"),
    "a key twice": ("version: 1\nversion: 1", " line 2: not YAML: key version twice"),
    "cut off": ("version: 1\npools: {a: [", " line 3: not YAML"),
}


@pytest.mark.parametrize(("text", "told"), NO_POLICY.values(), ids=NO_POLICY.keys())
def test_what_is_no_policy(text: str, told: str) -> None:
    """A file that is no policy at all is told in one line."""
    (problem,) = problems(text)
    assert problem.startswith(told)


def test_all_problems_at_once() -> None:
    """One reading tells every problem, of form and of sense alike."""
    pools = f"{{a: {{{POOL}, min: 9, max: 1}}}}"
    text = f"version: 1\nfoo: 1\npools: {pools}\nclasses: {{serving: {{capacity_types: [spot]}}}}"
    assert len(problems(text)) == 3


@given(st.binary(max_size=120) | st.text(max_size=120).map(lambda t: f"version: 1\n{t}".encode()))
def test_no_bytes_raise_anything_else(text: bytes) -> None:
    """Whatever stands in a file, it is a policy or a BadPolicy."""
    with suppress(BadPolicy):
        assert read_policy(text, "p").version == 1


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    """Unknown keys, unknown words and missing types fail the schema; durations may be text or numbers."""
    good = yaml.safe_load((ROOT / "examples" / "policy.yaml").read_text())
    for path, value in [
        (("pols",), {}),
        (("classes", "serving", "fallback"), "maybe"),
        (("pools", "t4", "instnce_type"), "x"),
        (("cooldown",), "soon"),
    ]:
        bad = copy.deepcopy(good)
        inner = bad
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, policy_schema())
    for duration in (90, "90s", 1.5):
        jsonschema.validate({**good, "cooldown": duration}, policy_schema())

"""Which offering for which pod: who may run where, and what it costs by the one objective."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec

from pilotlight.decide.fit.fit import model_allowed, pods_that_fit
from pilotlight.decide.money.budget_ladder import barring_step
from pilotlight.decide.money.economics import TYPICAL_RUN_S, usd_per_useful_hour
from pilotlight.decide.offers.flex_start import beyond_flex_start
from pilotlight.decide.offers.no_pool import beyond_reach, missing, no_pool, other_gpus, say_which_gpu
from pilotlight.decide.offers.offerings import renewal, too_old
from pilotlight.decide.offers.spot_economics import spot_refusal, without_dear_spot
from pilotlight.facts.capacity import CapacityType, Offering
from pilotlight.facts.fit.matching import selects, untolerated_taint
from pilotlight.facts.labels import NAMES_A_GPU
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.budgets import StepInForce
from pilotlight.facts.place.pod_verdicts import Code, Rejected
from pilotlight.facts.policy import ClassPolicy, Policy
from pilotlight.facts.workload import PodShape, clash, unlisted_amount
from pilotlight.units import MILLI_PER_GPU, count_of, human

T = TypeVar("T")

REMEMBERED = 4096
"""So many answers a ``Memo`` keeps."""


class Candidate(msgspec.Struct, frozen=True):
    """An offering a shape may run on: ``per_node`` pods of it fit an empty node."""

    offering: Offering
    per_node: int
    throughput: float

    @property
    def rate(self) -> Decimal:
        """Dollars an hour of one GPU's work."""
        return self.offering.usd_per_hour / max(1, self.offering.gpus) / Decimal(self.throughput)


class Eligible(msgspec.Struct, frozen=True):
    """Candidates for one shape, and why the rest are none. ``finding`` is (code, message) when nothing ever can.

    ``held`` would do, but may not be bought now, each with (code, reason). ``barred`` says which step of a budget's
    ladder rules offerings out. ``why`` says what a job's deadline asks for, ``look_again_at`` when it asks for more;
    ``sure``: room on spot does not do for it any more.
    """

    candidates: tuple[Candidate, ...]
    rejected: tuple[Rejected, ...]
    held: tuple[tuple[Candidate, Code, str], ...] = ()
    finding: tuple[Code, str] | None = None
    barred: str = ""
    why: str = ""
    look_again_at: datetime | None = None
    sure: bool = False


class Memo(Generic[T]):
    """Answers that a pure function gave before about the very same objects.

    It holds on to them, so no other object has their id.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], Hashable], tuple[tuple[object, ...], T]] = {}

    def __call__(self, about: tuple[object, ...], key: Hashable, work_out: Callable[[], T]) -> T:
        """The answer about these objects under a key."""
        asked = (tuple(map(id, about)), key)
        found = self._known.get(asked)
        if found is not None:
            return found[1]
        answer = work_out()
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[asked] = about, answer
        return answer


def reason_never_fits(shape: PodShape, offering: Offering) -> tuple[Code, str] | None:
    """Why a shape can never run on an offering, as (code, reason), or None."""
    if not _offers(offering, shape.gpu.resource):
        return "device", other_gpus(shape, offering)
    if shape.reach and (beyond := beyond_reach(shape, offering)):
        return "volume", beyond
    if not selects(offering.labels, shape.terms):
        return "selector", "the pod's node selector or affinity does not match its labels"
    if (taint := untolerated_taint(offering.taints, shape.tolerations)) is not None:
        return "toleration", f"the pod does not tolerate {taint.key}={taint.value}:{taint.effect}"
    if not model_allowed(shape, offering.gpu_model):
        return "model", f"{offering.gpu_model} is not one of {', '.join(shape.gpu_models)}"
    if shape.min_gpu_memory_gib and offering.gpu_memory_gib < shape.min_gpu_memory_gib:
        return "gpu-memory", f"{offering.gpu_memory_gib} GiB a GPU, the pod needs {shape.min_gpu_memory_gib}"
    if shape.other and (lacks := missing(shape, offering)):
        return "resource", f"its nodes offer no {' and no '.join(lacks)} (pools.{offering.pool}.slices)"
    if not per_node(shape, offering):
        ports = shape.near.ports if shape.near is not None else ()
        if ports and clash(offering.resources.ports, ports):
            return "neighbours", f"a DaemonSet has host port {' or '.join(ports)} on every node of it"
        return "size", f"an empty node does not hold it ({lack(shape, offering)})"
    return None


def per_node(shape: PodShape, offering: Offering) -> int:
    """Pods of a shape that an empty node holds."""
    return pods_that_fit(shape, offering.resource, offering.devices, offering.slices, offering.resources)


def _offers(offering: Offering, resource: str) -> bool:
    return resource in offering.slices or (resource == offering.resource and bool(offering.devices))


def lack(shape: PodShape, offering: Offering) -> str:
    """What a pod of a shape needs that an empty node does not hold."""
    have = offering.resources
    if (gpus := _devices(offering, shape.gpu.resource)) < shape.gpu.count:
        return f"needs {shape.gpu}, a node {'has' if shape.gpu.resource == offering.resource else 'offers'} {gpus}"
    for name, amount in shape.other:
        if (room := {**offering.slices, **dict(have.other)}.get(name, unlisted_amount(name))) < amount:
            return f"needs {amount} {name}, {room} allocatable"
    if shape.cpu_milli > have.cpu_milli:
        return f"needs {shape.cpu_milli / 1000:g} CPU, {have.cpu_milli / 1000:g} allocatable"
    if shape.memory > have.memory:
        return f"needs {shape.memory / 2**30:.1f} GiB of memory, {have.memory / 2**30:.1f} allocatable"
    return "too little ephemeral storage or pod slots"


def _devices(offering: Offering, resource: str) -> int:
    return len(offering.devices) if resource == offering.resource else offering.slices.get(resource, 0)


def eligible(
    shape: PodShape,
    offerings: Sequence[Offering],
    policy: Policy,
    throughput: Mapping[str, Mapping[str, float]],
    memory: Memory,
    now: datetime,
    steps: Sequence[StepInForce] = (),
    lit_on_demand: frozenset[str] = frozenset(),
) -> Eligible:
    """The offerings a shape may be bought now, by class rules, budgets' steps, quarantines and back-offs."""
    rules = policy.of_class(shape.workload_class)
    able, rejected = _fitting(shape, offerings, rules)
    if not able:
        return Eligible((), tuple(rejected), finding=no_pool(shape, {one.code for one in rejected}, offerings))
    if _model_unsaid(shape, rules, able):
        return Eligible((), tuple(rejected), finding=("which-gpu", say_which_gpu(shape.workload_class)))
    speeds, unknown = _speeds(shape, rules, able, throughput)

    def candidate(offering: Offering) -> Candidate:
        return Candidate(offering, per_node(shape, offering), speeds[offering.gpu_model])

    free: list[Offering] = []
    held: list[tuple[Candidate, Code, str]] = []
    for offering in able:
        if offering.gpu_model in speeds:
            if wrong := _not_now(shape, offering, policy, memory, now, steps):
                held.append((candidate(offering), *wrong))
            else:
                free.append(offering)
    falls_back = rules.fallback == "allow"
    if falls_back:
        free, left = without_dear_spot(shape, free, policy, lit_on_demand)
        held += [(candidate(offering), "spot", why) for offering, why in left]
    preferred = [o for o in free if allows(rules, o.capacity_type)]
    chosen = free if falls_back and (shape.due or not preferred) else preferred
    barred = next((why for _, code, why in held if code == "step"), "")
    return Eligible(tuple(map(candidate, chosen)), (*rejected, *unknown), tuple(held), barred=barred)


class Choices:
    """Offerings that shapes may be bought, worked out once for those alike but for a size of which as many fit a node.

    Where memory knows of shapes that do not run on nodes, each is worked out by itself.
    """

    def __init__(self, *known: Any) -> None:
        self._known, self._alone = known, bool(known[2].misfits or known[2].quarantines)
        self._asked = 0
        self._own: Memo[Eligible] = Memo()  # By shape, for one is asked about again and again.
        self._found: Memo[Eligible] = Memo()
        self._sized: Memo[list[Offering]] = Memo()  # Offerings whose nodes have the devices of a request.

    def __call__(self, shape: PodShape, offerings: Sequence[Offering], *more: Any) -> Eligible:
        """As ``eligible``, of which ``known`` and ``more`` are the further arguments."""
        about = tuple(offerings) if shape.key else (shape, *offerings)
        return self._own(about, (shape.key, more), lambda: self._as_alike(shape, offerings, more))

    def _as_alike(self, shape: PodShape, offerings: Sequence[Offering], more: tuple[Any, ...]) -> Eligible:
        self._asked += 1
        if self._alone or self._asked <= 8:  # Of few shapes, none is like another as a rule.
            return eligible(shape, offerings, *self._known, *more)
        about, gpu = tuple(offerings), shape.gpu
        sized = self._sized(about, gpu, lambda: [one for one in offerings if _devices(one, gpu.resource) >= gpu.count])
        sizes = tuple([per_node(shape, one) or lack(shape, one) for one in sized])
        key = sizes, shape.beside_size, more
        return self._found(about, key, lambda: eligible(shape, offerings, *self._known, *more))


def _fitting(
    shape: PodShape, offerings: Sequence[Offering], rules: ClassPolicy
) -> tuple[list[Offering], list[Rejected]]:
    """Offerings that a shape can run on by its class's rules, and why it cannot on the others."""
    able: list[Offering] = []
    rejected: list[Rejected] = []
    for offering in offerings:
        if wrong := reason_never_fits(shape, offering) or _against_class(shape, offering, rules):
            rejected.append(Rejected(offering=offering.name, code=wrong[0], why=wrong[1]))
        else:
            able.append(offering)
    return able, rejected


def allows(rules: ClassPolicy, kind: CapacityType) -> bool:
    """True where a class may use a capacity type: reserved wherever it may use on demand."""
    return kind in rules.capacity_types or (kind == "reserved" and "on-demand" in rules.capacity_types)


def _against_class(shape: PodShape, offering: Offering, rules: ClassPolicy) -> tuple[Code, str] | None:
    kind = offering.capacity_type
    if kind == "spot" and shape.workload_class == "serving":
        return "class", "serving never runs on spot"
    if not allows(rules, kind) and not (rules.fallback == "allow" and kind == "on-demand"):
        where = f"classes.{shape.workload_class}.capacity_types"
        return "class", f"class {shape.workload_class} may not use {kind} ({where})"
    if kind == "flex-start" and (late := beyond_flex_start(shape, rules)):
        return "class", late
    if kind == "spot" and (unsafe := spot_refusal(shape, offering, rules)):
        return "spot", unsafe
    if not shape.gpu_models and isinstance(rules.gpu_models, tuple) and offering.gpu_model not in rules.gpu_models:
        return "class", f"class {shape.workload_class} may use only {', '.join(rules.gpu_models)}"
    if offering.gpu_memory_gib < rules.min_gpu_memory:
        return "class", f"class {shape.workload_class} needs {rules.min_gpu_memory} GiB a GPU"
    return None


def _model_unsaid(shape: PodShape, rules: ClassPolicy, able: Sequence[Offering]) -> bool:
    if rules.gpu_models is not None or shape.gpu_models or len({o.gpu_model for o in able}) == 1:
        return False
    return not any(r.key in NAMES_A_GPU and r.operator in ("In", "Exists") for t in shape.terms for r in t)


def _speeds(
    shape: PodShape, rules: ClassPolicy, able: Sequence[Offering], throughput: Mapping[str, Mapping[str, float]]
) -> tuple[dict[str, float], list[Rejected]]:
    """Relative speed by model among comparable ones, and those left out. Notebooks take the cheapest at any speed."""
    models = sorted({o.gpu_model for o in able})
    if len(models) == 1 or shape.workload_class == "notebook":
        return dict.fromkeys(models, 1.0), []
    table = throughput.get(shape.workload_class, {})
    known = {m: table[m] for m in models if table.get(m, 0) > 0}
    if not known:
        order = [m for m in (shape.gpu_models or rules.gpu_models or ()) if m in models] or models
        known = {order[0]: 1.0}
    why = (
        "no throughput figure for {0} beside {1}: not interchangeable; to let it stand in, set the policy's "
        "prices.throughput.{2}.{0} (or the catalogue's throughput.{2}.{0}) to its speed on your work, where {3}"
    )
    words = ", ".join(known), shape.workload_class, ", ".join(f"{m} is {speed:g}" for m, speed in known.items())
    left = [o for o in able if o.gpu_model not in known]
    return known, [Rejected(offering=o.name, code="throughput", why=why.format(o.gpu_model, *words)) for o in left]


def _not_now(
    shape: PodShape, offering: Offering, policy: Policy, memory: Memory, now: datetime, steps: Sequence[StepInForce]
) -> tuple[Code, str] | None:
    if steps and (step := barring_step(steps, offering, shape.workload_class, shape.team, now)):
        return "step", step
    if too_old(policy, offering, now):
        return (
            "price-age",
            f"not before its price is renewed: it is of {offering.priced_at:%Y-%m-%d}; {renewal(policy, offering)}",
        )
    if offering.paid_until is not None:
        run_s = shape.checkpoint_s or shape.max_run_s or TYPICAL_RUN_S
        if now + timedelta(seconds=offering.boot_s + run_s) > offering.paid_until:
            return "paid", f"its paid capacity ends {offering.paid_until:%Y-%m-%d %H:%M}, before {human(run_s)} of work"
    misfits = [m for m in memory.misfits if m.shape == shape.key and m.until > now and not m.apart]
    if len(misfits) > 1:
        return "quarantine", f"not before {misfits[-1].until:%H:%M}: on {len(misfits)} nodes it {misfits[-1].why}"
    if quarantine := memory.live_quarantine(shape.key, offering.pool, now):
        return "quarantine", f"quarantined for this shape until {quarantine.until:%H:%M}: {quarantine.why}"
    backoff = memory.live_backoff(offering.name, now)
    return ("backoff", f"not before {backoff.until:%H:%M:%S}: {backoff.why}") if backoff else None


def cost(candidate: Candidate, shape: PodShape, count: int, policy: Policy) -> Decimal:
    """Dollars per useful hour of one of ``count`` pods, those that share a node of this candidate.

    A slower model takes longer for the same work: its price is divided by its relative throughput.
    """
    offering, rules = candidate.offering, policy.of_class(shape.workload_class)
    run_s = min(shape.max_run_s or TYPICAL_RUN_S, TYPICAL_RUN_S)
    idle_s = min(offering.boot_s, rules.max_idle_timeout) if rules.idle_timeout is None else rules.idle_timeout
    pods, saves_s = min(count, candidate.per_node), shape.checkpoint_s or run_s
    usd = usd_per_useful_hour(offering, pods, run_s, idle_s, candidate.throughput, saves_s)
    if offering.usual_usd_per_hour is None or not offering.usd_per_hour:
        return usd
    return usd * offering.usual_usd_per_hour / offering.usd_per_hour


def rank_candidates(
    eligible_: Eligible, shape: PodShape, count: int, policy: Policy
) -> list[tuple[Decimal, Candidate]]:
    """Candidates, the cheapest for ``count`` pods first; ties by fewest stranded GPUs, then by name."""

    def key(pair: tuple[Decimal, Candidate]) -> tuple[Decimal, int, str]:
        return pair[0], stranded_gpus(pair[1], shape, count), pair[1].offering.name

    pairs = [
        (cost(c, shape, count, policy), c)
        for c in eligible_.candidates
        if policy.max_stranded_gpus is None or stranded_gpus(c, shape, count) <= policy.max_stranded_gpus
    ]
    return sorted(pairs, key=key)


def held_back(eligible_: Eligible, shape: PodShape, count: int, policy: Policy) -> list[Rejected]:
    """Offerings that would do for ``count`` pods and may not be bought, each with its price and the rule against it."""
    held = list(eligible_.held)
    most = policy.max_stranded_gpus
    for candidate in eligible_.candidates if most is not None else ():
        left = stranded_gpus(candidate, shape, count)
        if left > most:  # type: ignore[operator]
            held.append(
                (
                    candidate,
                    "stranded",
                    f"would strand {count_of(left, 'GPU')} of a node, over max_stranded_gpus {most}",
                )
            )
    return [
        Rejected(offering=c.offering.name, code=code, why=why, usd_per_useful_hour=cost(c, shape, count, policy))
        for c, code, why in held
    ]


def stranded_gpus(candidate: Candidate, shape: PodShape, count: int) -> int:
    """Whole GPUs of a new node that ``count`` pods of a shape would leave unused."""
    used = -(-min(count, candidate.per_node) * shape.gpu.total_milli // MILLI_PER_GPU)
    return max(0, candidate.offering.gpus - used)

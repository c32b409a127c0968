"""A job of a recorded trace, and what a replay of it measured."""

from decimal import Decimal

import msgspec

from pilotlight.units import MILLI_PER_GPU, Seconds


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a trace. ``gpus`` over 8 is a gang of whole 8-GPU nodes; ``gpu_milli`` < 1000 only with 1 GPU.

    ``duration_s`` is known to the world alone: a policy must not look at it before the job ends.
    """

    job_id: str  # Its name in the trace.
    submit_s: Seconds  # From the trace's beginning.
    duration_s: Seconds  # That it runs.
    gpus: int  # That it asks for.
    gpu_milli: int = MILLI_PER_GPU  # Thousandths of each.
    models: tuple[str, ...] = ()  # Allowed ones; empty: any.
    team: str = ""  # Who pays for it.
    priority: str = ""  # As its trace has it: a word or a number.
    group: str = ""  # Its app, whose runs are alike.
    image: str = ""  # Of its container.
    class_priority: int = 0  # Of its PriorityClass. No trace has it.
    saves_s: Seconds = 0.0  # Of a checkpoint that it is asked for; 0: it cannot be asked. No trace has it.

    @property
    def gpu_seconds(self) -> float:
        """GPUs x share x run time."""
        return self.gpus * self.gpu_milli / MILLI_PER_GPU * self.duration_s


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Waiting times in seconds. Percentiles by nearest rank: w[min(n-1, floor(p x n))] of the sorted waits."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float

    @staticmethod
    def of_waits(waits: list[float]) -> "Spread":
        """Of no waits: all 0."""
        if not waits:
            return Spread(mean=0, p50=0, p95=0, p99=0, max=0)
        w = sorted(waits)

        def rank(p: float) -> float:
            return w[min(len(w) - 1, int(p * len(w)))]

        return Spread(mean=sum(w) / len(w), p50=rank(0.50), p95=rank(0.95), p99=rank(0.99), max=w[-1])


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Lower bounds of what a trace costs, in dollars: shares of GPUs, and whole nodes at zero wait.

    ``on_demand`` is the latter at on-demand prices, where the others are at spot prices.
    """

    fluid: Decimal
    integral: Decimal
    on_demand: Decimal | None = None


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that a run left undone, and why."""

    jobs: int
    why: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one policy with one trace. ``wakes`` are starts of stopped nodes, whose disks' ``standby_usd`` are part
    of the dollars. ``unfinished`` are the jobs that it left, the most frequent reason first."""

    policy: str  # Pilotlight's or the peer's name.
    trace: str  # The trace's name.
    jobs: int  # In the trace.
    jobs_done: int  # That came to their end.
    cost_usd: Decimal  # Of all nodes and stopped disks.
    gpu_hours: float  # Of the jobs' work.
    gpu_hours_paid: float  # Of lit nodes.
    wait_s: Spread  # Seconds from submit to first start.
    delay_s: Spread  # Seconds beyond submit and run time.
    launches: int  # Nodes begun.
    terminations: int  # Nodes given back.
    interruptions: int  # Nodes that the cloud took.
    lost_gpu_hours: float  # Work done again after those.
    bound_usd: Bounds  # Lower bounds of the dollars.
    wakes: int = 0  # Starts of stopped nodes.
    standby_usd: Decimal = Decimal(0)  # Of stopped nodes' disks, part of the cost.
    unfinished: tuple[Unfinished, ...] = ()  # Jobs left undone, the most frequent reason first.

    @property
    def finished(self) -> bool:
        """True where every job has come to its end."""
        return self.jobs_done == self.jobs

    @property
    def x_on_demand(self) -> float | None:
        """Dollars as a multiple of the bound at on-demand prices; None where all is bought at those."""
        return float(self.cost_usd / self.bound_usd.on_demand) if self.bound_usd.on_demand else None

    @property
    def x_integral(self) -> float | None:
        """Dollars as a multiple of the integral bound; None where the bound is nothing."""
        return float(self.cost_usd / self.bound_usd.integral) if self.bound_usd.integral else None

    @property
    def utilization(self) -> float | None:
        """GPU-hours of finished jobs over GPU-hours paid; None where none were paid."""
        return self.gpu_hours / self.gpu_hours_paid if self.gpu_hours_paid else None

    @property
    def usd_per_gpu_hour(self) -> float | None:
        """Dollars for one GPU-hour of finished work; None where none was done."""
        return float(self.cost_usd) / self.gpu_hours if self.gpu_hours else None


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One sample of a run over time: GPUs paid for, GPUs in use, dollars so far, jobs that wait."""

    t: Seconds
    gpus_paid: float
    gpus_used: float
    usd: Decimal
    waiting: int


class IdleHour(msgspec.Struct, frozen=True, kw_only=True):
    """One hour of a run, from ``start`` seconds: dollars paid for idle GPUs, and how many idled on average."""

    start: Seconds
    usd: Decimal
    gpus: float

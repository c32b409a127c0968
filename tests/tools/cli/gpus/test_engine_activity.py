"""Activity of a GPU's engine: looks at a real H200 (recorded), and the samples that are taken, compared and freed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pilotlight.decide.utilisation.idle_pods import UNDER
from pilotlight.tools.node_agent.engine_activity import APART_S, EngineActivity
from pilotlight.tools.node_agent.gpu_readings import Reading
from pilotlight.tools.node_agent.nvml import RecordedNvml, readings

H200 = Path(__file__).with_name("h200_looks.json")
"""An H200 that is idle, holds 100 GiB, multiplies, spins on one multiprocessor, works every other half second (two
looks), has tiny batches, and is idle again; driver 580.159, no MIG."""
IDLE, HELD, MATMUL, SPIN, HALF, OTHER_HALF, TINY, AFTER = range(8)


@pytest.fixture(scope="module")
def looks() -> list[Reading]:
    """The GPU at each look."""
    recorded, found = RecordedNvml(H200), list[Reading]()
    for _ in range(AFTER + 1):
        recorded.turn()
        found += readings(recorded)
    return found


def test_memory_is_what_processes_hold(looks: list[Reading]) -> None:
    """The driver's own 615 MiB are nobody's: an idle GPU has 0, as nvidia-smi says."""
    assert [looks[n].used for n in (IDLE, AFTER)] == [0, 0]
    assert looks[HELD].used == 102926.8125


def test_a_job_of_bursts_is_seen_between_looks(looks: list[Reading]) -> None:
    """Its last sample may say that nothing happens; its ratio since the last look does not."""
    assert [looks[n].util for n in (HALF, OTHER_HALF)] == [0, 98]
    assert all(0.3 < (looks[n].active or 0) < 0.7 for n in (HALF, OTHER_HALF))


def test_work_and_silence_lie_on_their_sides_of_the_bound(looks: list[Reading]) -> None:
    """Memory that is only held stays under the share that idle pods are called by."""
    assert all((looks[n].active or 0) > 0.99 for n in (MATMUL, SPIN))
    assert 0 < (looks[HELD].active or 0) < UNDER


class Driver:
    """NVML's GPM with a counter that the test moves: a sample is its value, and what is not freed is a leak."""

    NVML_SUCCESS = 0
    NVML_GPM_METRICS_GET_VERSION = 1

    class NVMLError(Exception):
        """The library's."""

    def __init__(self, supported: bool = True) -> None:
        self.supported, self.busy, self.kept, self.status, self.gone = supported, 0.0, set[int](), 0, False
        self._made = 0

    def nvmlGpmQueryDeviceSupport(self, _: Any) -> Any:
        """Whether the GPU has GPM."""
        return SimpleNamespace(isSupportedDevice=self.supported)

    def nvmlGpmSampleAlloc(self) -> Any:
        """Room for a sample."""
        self._made += 1
        self.kept.add(self._made)
        return SimpleNamespace(n=self._made, busy=None)

    def nvmlGpmSampleGet(self, _: Any, sample: Any) -> Any:
        """The counter now."""
        if self.gone:
            raise self.NVMLError
        sample.busy = self.busy
        return sample

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        """Give the room back; twice is an error."""
        self.kept.remove(sample.n)

    def c_nvmlGpmMetricsGet_t(self) -> Any:
        """The form of a question."""
        return SimpleNamespace(metrics=[SimpleNamespace()])

    def nvmlGpmMetricsGet(self, asked: Any) -> None:
        """Fill in what lies between its samples."""
        asked.metrics[0].value = asked.sample2.busy - asked.sample1.busy
        asked.metrics[0].nvmlReturn = self.status


def test_each_look_counts_from_the_one_before() -> None:
    """Of each GPU by itself; one sample of each is kept."""
    driver = Driver()
    engines = EngineActivity(driver)
    assert engines.since_last("a", "A") is None
    driver.busy = 40
    assert (engines.since_last("a", "A"), engines.since_last("b", "B")) == (0.4, None)
    driver.busy = 65
    assert (engines.since_last("a", "A"), engines.since_last("b", "B")) == (0.25, 0.25)
    assert len(driver.kept) == 2


def test_looks_lie_apart_as_nvml_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes at once waits for the rest of the tenth of a second."""
    waited = list[float]()
    monkeypatch.setattr("pilotlight.tools.node_agent.engine_activity.sleep", waited.append)
    engines = EngineActivity(Driver())
    for _ in range(2):
        engines.since_last("a", "A")
    assert 0 < sum(waited) <= APART_S


def test_no_figure_is_made_up() -> None:
    """Without GPM, with a metric that fails, and when the GPU is gone there is none; and nothing leaks."""
    assert [EngineActivity(Driver(supported=False)).since_last("a", "A") for _ in range(2)] == [None, None]
    driver = Driver()
    engines = EngineActivity(driver)
    engines.since_last("a", "A")
    driver.status = 3
    assert engines.since_last("a", "A") is None
    driver.gone = True
    assert engines.since_last("a", "A") is None
    assert len(driver.kept) == 1

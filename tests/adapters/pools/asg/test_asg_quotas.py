"""Which quota an instance counts against, by AWS's own names, and how much of it is in use."""

import pytest

from pilotlight.adapters.pools.asg.groups import Cpu, Seen
from pilotlight.adapters.pools.asg.service_quotas import Quotas, _counted
from pilotlight.facts.capacity import CapacityType

G, P = "Running On-Demand G and VT instances", "Running On-Demand P instances"
OLD, NEW = "All P4, P3 and P2 Spot Instance Requests", "All P5 Spot Instance Requests"
QUOTAS = Quotas({G: 64, P: 192, OLD: 96, NEW: 384, "Running On-Demand F instances": 8})

FAMILIES: dict[str, tuple[str, CapacityType, str]] = {
    "a G on demand": ("g6e.xlarge", "on-demand", G),
    "a P on demand, whatever its generation": ("p5en.48xlarge", "on-demand", P),
    "an older P on spot": ("p4d.24xlarge", "spot", OLD),
    "a newer P on spot": ("p5.48xlarge", "spot", NEW),
    "one that no quota names": ("p6-b200.48xlarge", "spot", ""),
    "a G with memory": ("gr6.4xlarge", "on-demand", G),
}


@pytest.mark.parametrize(("name", "kind", "quota"), FAMILIES.values(), ids=FAMILIES)
def test_an_instance_counts_against_the_quota_of_its_family(name: str, kind: CapacityType, quota: str) -> None:
    """Its generation where a quota names that, else its letter; nothing is guessed."""
    assert QUOTAS.quota_for(name, kind) == quota


def test_what_runs_is_counted_in_vcpus() -> None:
    """Cores by threads, on demand and on spot apart."""
    cpu = Cpu(coreCount=2, threadsPerCore=2)
    instances = [
        Seen("i", instanceType="g5.xlarge", cpuOptions=cpu),
        Seen("i", instanceType="g5.xlarge", cpuOptions=cpu),
        Seen("i", instanceType="p4d.24xlarge", instanceLifecycle="spot", cpuOptions=Cpu(48, 2)),
    ]
    assert dict(_counted(QUOTAS, instances)) == {G: 8, OLD: 96}

"""What conditions of a node say of its GPUs."""

import pytest

from pilotlight.codec.kubernetes.nodes.nodes import _ill
from pilotlight.codec.kubernetes.typed_objects import Condition


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        pytest.param(
            Condition(
                type="XIDErrors", status="True", reason="XIDErrorsFound", message="NVRM: Xid (PCI:0000:01:00): 79"
            ),
            "XIDErrors is True (XIDErrorsFound: NVRM: Xid (PCI:0000:01:00): 79)",
            id="an XID of the hardware",
        ),
        pytest.param(
            Condition(type="XIDErrors", status="True", message="NVRM: Xid (PCI:0000:01:00): 31, pid=7"),
            "",
            id="an XID that a program causes",
        ),
        pytest.param(
            Condition(type="XIDErrors", status="True", message="Xid (PCI:1): 13, then Xid (PCI:1): 48"),
            "XIDErrors is True (Xid (PCI:1): 13, then Xid (PCI:1): 48)",
            id="both of them",
        ),
        pytest.param(
            Condition(type="AcceleratedHardwareReady", status="False", reason="NvidiaXID95Error"),
            "AcceleratedHardwareReady is False (NvidiaXID95Error)",
            id="a memory error that was not contained",
        ),
        pytest.param(
            Condition(type="AcceleratedHardwareReady", status="True", reason="AcceleratedHardwareIsReady"),
            "",
            id="well",
        ),
        pytest.param(Condition(type="GPUMissing", status="True"), "GPUMissing is True", id="a GPU is gone"),
        pytest.param(Condition(type="GPUMissing", status="Unknown"), "", id="nobody knows"),
        pytest.param(Condition(type="MemoryPressure", status="True"), "", id="no matter of a GPU"),
    ],
)
def test_what_a_condition_says(condition: Condition, said: str) -> None:
    """The condition with its reason and message, where GPUs are not well."""
    assert _ill(condition) == said


def test_what_a_detector_writes_is_cut() -> None:
    """A log of a driver does not fill a decision's record."""
    found = Condition(type="GPUMissing", status="True", message="x" * 10_000)
    assert len(_ill(found)) < 300

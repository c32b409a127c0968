"""The owner who answers an interruption notice: one, by the pool's policy and by what the node itself shows."""

from typing import NamedTuple

from pilotlight.facts.capacity import Node
from pilotlight.facts.policy import Policy

KARPENTER = "karpenter.sh/nodepool"
NTH = "aws-node-termination-handler/"


class OursOrNot(NamedTuple):
    """The answer that a notice is ours or not, and the reason."""

    ours: bool
    why: str


def owner_of(policy: Policy, pool: str, node: Node | None) -> OursOrNot:
    """The owner of a pool's interruptions. Another's mark on the node counts more than the policy."""
    if not pool:
        return OursOrNot(
            False, "no node is known by this instance, and no pool it was of: reported, nothing is guessed"
        )
    taint = next((t.key for t in node.taints if t.key.startswith(NTH)), "") if node else ""
    if taint:
        return OursOrNot(False, f"AWS' node termination handler is at work on it (taint {taint})")
    if node is not None and KARPENTER in node.labels:
        return OursOrNot(False, f"Karpenter owns it (label {KARPENTER}={node.labels[KARPENTER]})")
    rules = policy.pools.get(pool)
    if rules is None:
        return OursOrNot(False, f"pool {pool} is not in the policy: its interruptions are another's")
    if rules.handled_by != "pilotlight":
        return OursOrNot(False, f"pools.{pool}.handled_by is {rules.handled_by}")
    return OursOrNot(True, f"pools.{pool}.handled_by is pilotlight")

"""Commands about GPUs at work: waste, run lengths, targets, who could give way, a monitor for a node.

They read telemetry or a cluster and print advice of ``tools/advice`` or ``decide/utilisation``. None changes a
cluster; the monitor alone keeps running, on the node whose GPUs it reads.
"""

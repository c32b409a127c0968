"""Signs that a node's GPUs are not well: XID and ECC errors, a GPU or a link that is gone.

Conditions are written by whoever watches the driver on the node, alerts by a Prometheus that has DCGM's figures. A
kubelet's own conditions (memory, disk, network) are not among them: they pass, and are no matter of a GPU.
"""

WHERE_TRUE = ("GPUMissing", "NVLinkStatusInactive", "XIDErrors")
"""Bad where they are true: AKS's node problem detector writes them, or one of yours
(learn.microsoft.com/azure/aks/node-problem-detector)."""

WHERE_FALSE = ("AcceleratedHardwareReady",)
"""Bad where they are false: EKS's node monitoring agent writes it, with the XID in its reason
(docs.aws.amazon.com/eks/latest/userguide/node-health.html)."""

OF_PROGRAMS = frozenset((8, 13, 31, 43, 45, 68, 69))
"""XIDs that a program causes by itself: the GPU is well (docs.nvidia.com/deploy/xid-errors)."""

ALERTS = frozenset(("GpuXid", "GpuMemoryFails"))
"""Alerts of infra/prometheus on DCGM_FI_DEV_XID_ERRORS, DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, DCGM_FI_DEV_ROW_REMAP_FAILURE,
or yours of the same names."""

NODE_LABELS = ("node", "Hostname", "hostname", "kubernetes_node")
"""Where such an alert names its node: the first that is there. dcgm-exporter has it as Hostname."""

CODE_LABELS = ("err_code", "xid")
"""Where it may name its XID: dcgm-exporter as err_code. The gauge's value is that too, which no alert carries."""

SICK_GPU, SHORT_OF_GPUS, MANY_SICK, NODE_LOST = "sick-gpu", "gpu-missing", "many-sick", "node-lost"
"""Codes of findings: a node whose GPUs are not well, one that shows fewer than its type has, a pool of which so many
are sick that it is no hardware, and a node with GPU pods that is not ready any more."""

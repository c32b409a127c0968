"""Names of labels and annotations, as Kubernetes, the clouds and Pilotlight spell them."""

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
OS = "kubernetes.io/os"
ARCH = "kubernetes.io/arch"
HOSTNAME = "kubernetes.io/hostname"
GPU_PRODUCT = "nvidia.com/gpu.product"
"""Set by NVIDIA's GPU feature discovery, as "Tesla-T4"."""
GPU_PRESENT, GPU_MEMORY = "nvidia.com/gpu.present", "nvidia.com/gpu.memory"
"""Set by the same: "true", and the MiB of one device as NVML reports them."""
CAPACITY_TYPE = "karpenter.sh/capacity-type"
KARPENTER_NODE_POOL = "karpenter.sh/nodepool"
AUTO_MODE = ("eks.amazonaws.com/compute-type", "auto")
"""On every node that EKS Auto Mode made."""

POOL = "pilotlight.dev/pool"
STEP = "pilotlight.dev/step"
"""On a claim, the step that its name is a hash of: it proves whose it is where its label was taken off."""
GPU_MODEL = "pilotlight.dev/gpu-model"
"""The catalogue's name of a model, as "T4"."""
NAMES_A_GPU = frozenset(
    {
        GPU_MODEL,
        GPU_PRODUCT,
        INSTANCE_TYPE,
        POOL,
        "cloud.google.com/gke-accelerator",
        "karpenter.k8s.aws/instance-gpu-name",
    }
)
"""Labels by which a pod's own selector says which GPU it wants."""
AFFINITY_OPT_IN = "pilotlight.dev/placement"
"""On a namespace, "affinity": its GPU pods are narrowed to their cheapest types as they are created."""
NODE_NAME = "metadata.name"
"""Not a label: ``matchFields`` on a node's name are read as a requirement on this key, which every node carries."""

ZONE_ALIASES = (
    "failure-domain.beta.kubernetes.io/zone",
    "topology.ebs.csi.aws.com/zone",
    "topology.gke.io/zone",
    "topology.disk.csi.azure.com/zone",
)
"""Older and CSI drivers' names for a zone: read as ``ZONE``."""

OPT_IN = ("gpu", "on-demand")
"""The pod label that ``require_label`` asks for."""
TEAM = ("pilotlight.dev/team", "team")
WORKLOAD_CLASS = ("pilotlight.dev/workload-class", "workload-type", "workload-class")

OWN_REQUEST = "autoscaling.x-k8s.io/consume-provisioning-request"
"""The annotation of a pod that waits for the nodes of a ProvisioningRequest: Kueue's, or its owner's."""
GPU_MODELS = "pilotlight.dev/gpu-models"
MIN_GPU_MEMORY = "pilotlight.dev/min-gpu-memory"
GPU_SHARE = "pilotlight.dev/gpu-share"
CHECKPOINT_S = "pilotlight.dev/checkpoint-seconds"
"""Seconds between a pod's checkpoints."""
CHECKPOINT_TAKES_S = "pilotlight.dev/checkpoint-takes-seconds"
"""Seconds that a checkpoint takes which the pod is asked for by an Event ``CheckpointNow``."""
CHECKPOINT_NOW = "CheckpointNow"
"""The reason of an Event that asks a pod for a checkpoint."""
NO_GPU_NODE = "NoGpuNode"
"""The reason of an Event that says why a pod gets no node: a Warning."""
NODE_BOUGHT = "GpuNodeBought"
"""The reason of an Event that says what was bought for a pod."""
WAITS = "WaitsForSpot"
"""The reason of an Event that says that a job with a deadline waits, and until when at most."""
MOVED = "MovedOff"
"""The reason of an Event that says who moved a pod off its node, and why."""
GPU_IDLE = "GpuIdle"
"""The reason of an Event that says that a pod's GPUs do nothing, and when its owner is put to rest: a Warning."""
RECLAIM = "pilotlight.dev/reclaim"
"""On a Deployment, StatefulSet, Job or Notebook: "true" lets it be put to rest when idle, "false" never."""
SNOOZE_UNTIL = "pilotlight.dev/snooze-until"
"""On the same: it is left alone until then, RFC 3339."""
COUNT_BEFORE = "pilotlight.dev/count-before"
"""On the same, by us: the count that it had when it was put to rest."""
PAUSED_BEFORE = "pilotlight.dev/paused-before"
"""On a ScaledObject of KEDA, by us: the ``paused-replicas`` that it had before its target was put to rest, or empty."""
CORDONED, RELEASED, KEPT = "Cordoned", "Released", "Kept"
"""The reasons of Events on nodes. That one is kept which should have gone is a Warning."""
OUT_OF_QUEUE, BACK_IN_QUEUE = "OutOfQueue", "BackInQueue"
"""The reasons of Events on queued work that there is no money for."""
WARNINGS = frozenset({NO_GPU_NODE, KEPT, GPU_IDLE, OUT_OF_QUEUE})
"""The reasons of Events that are Warnings."""
CHECKPOINTED_AT = "pilotlight.dev/checkpointed-at"
"""When the pod's last checkpoint was safe, RFC 3339: the pod writes it."""
DEADLINE = "pilotlight.dev/deadline"
"""When a batch or training pod's job must have ended, RFC 3339 with its zone."""
WORK = "pilotlight.dev/work"
"""The run that a job with a deadline needs, as "48h"; a plain number is hours."""
GANG = "pilotlight.dev/gang"
GANG_SIZE = "pilotlight.dev/gang-size"

DRAINING = "pilotlight.dev/draining"
"""The key of our taint on a node that takes no new pods for our sake; its effect is NoSchedule."""
CLOSED_BY = "pilotlight.dev/closed-by"
"""Beside that taint, an annotation of a node that is being given back: the decision. Who opens it by hand leaves it."""
HOME = "pilotlight.dev/home"
"""The key of our taint on a node that takes only the pods it was bought for, or given to; its effect is NoSchedule.

Its value is the node's home, which those pods tolerate.
"""
NEW_HOME = "new"
"""The value of that taint on a node that was just born: no pod tolerates it, and it is given a home when it is seen."""
ODD_HOME = "!"
"""The home of a node whose taint has an effect that no toleration of ours bears: no pod is given it."""
WATCHED_AT = "pilotlight.dev/watched-at"
"""On our Lease: when its watchman last looked at it, RFC 3339."""
EVICTS = "pilotlight.dev/evicts"
"""On an Eviction of ours, "true": admission asks whether its pod is on the node of ``ON_NODE``, and that is ours."""
ON_NODE = "pilotlight.dev/node"
"""On the same, an annotation: the node that its pod is on."""
HANDED_BACK = "pilotlight.dev/handed-back"
"""A tag on the group of a pool that was given back, with the moment: nothing is bought or given back there."""
ANNOTATE = "pilotlight.dev/annotate"
"""On a pod, "true": what its owner is told is put in ``STATUS`` too."""
STATUS = "pilotlight.dev/status"

"""The class of a pod: training, serving, notebook or batch, and the reason for it; and the owner that made it, by name.

Article S3's classifier, corrected (E30): an explicit label comes first; names are matched as whole words of the
command and of the image's path, never inside others ("gitlab" is no lab, "--labels" no notebook), options are not
read; its fallback (more than one GPU, or more than 32 GiB of memory, is training) stays.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pilotlight.facts.labels import WORKLOAD_CLASS
from pilotlight.facts.workload import PodTraits, WorkloadClass

SYNONYMS: dict[str, WorkloadClass] = {
    **dict.fromkeys(("training", "train", "finetuning", "fine-tuning"), "training"),
    **dict.fromkeys(("serving", "inference", "serve", "production"), "serving"),
    **dict.fromkeys(("notebook", "dev", "development", "interactive", "workspace", "jupyter"), "notebook"),
    **dict.fromkeys(("batch", "hpo", "sweep", "preprocessing", "etl"), "batch"),
}
"""Values of the workload label. HPO and preprocessing are batch work: S2 calls them fit for spot."""

_MADE_BY: dict[str, WorkloadClass] = {
    **dict.fromkeys(("PyTorchJob", "MPIJob", "TFJob", "XGBoostJob", "JAXJob", "TrainJob"), "training"),
    **dict.fromkeys(("InferenceService", "RayService"), "serving"),
    "Notebook": "notebook",
}
_NEVER_END = {"ReplicaSet": "Deployment", "StatefulSet": "StatefulSet"}
"""Owners of pods that are always made again, and their makers' names."""
_MARKS: dict[str, WorkloadClass] = {
    "training.kubeflow.org/job-name": "training",
    "serving.kserve.io/inferenceservice": "serving",
    "notebook-name": "notebook",
    "hub.jupyter.org/username": "notebook",
}

_NAMES: tuple[tuple[WorkloadClass, str], ...] = (
    ("batch", r"batch (?:inference|predict\w*|score|scoring)|offline inference"),
    ("notebook", r"jupyter\w*|notebooks?|code server|openvscode|vscode|rstudio|colab"),
    (
        "serving",
        r"vllm|tritonserver|triton|torchserve|tensorflow serving|tf serving|tgi|text generation inference|"
        r"sglang|kserve|bentoml|serve|serving|server|inference|infer|predictor|llama server|ollama",
    ),
    (
        "training",
        r"torchrun|torch distributed|deepspeed|accelerate|horovodrun|horovod|mpirun|megatron|lightning|"
        r"train|trainer|training|finetune|fine tune|finetuning|pretrain|pretraining",
    ),
    ("batch", r"batch|etl|preprocess\w*|transcode|render|embed\w*"),
)
"""Classes by the words that tell them, the surest first."""

BIG_MEMORY = 32 * 2**30


def classify(traits: PodTraits) -> tuple[WorkloadClass, str]:
    """The class of a pod and the reason: explicit label, then maker, command, image, size."""
    unknown = ""
    for label in WORKLOAD_CLASS:
        value = traits.labels.get(label, "")
        if value.lower() in SYNONYMS:
            return SYNONYMS[value.lower()], f"label {label}={value}"
        if value and not unknown:
            unknown = f" (label {label}={value} names no class)"
    found, reason = _guess(traits)
    return found, reason + unknown


def _guess(traits: PodTraits) -> tuple[WorkloadClass, str]:
    if traits.owner_kind in _MADE_BY:
        return _MADE_BY[traits.owner_kind], f"made by a {traits.owner_kind}"
    for mark, name in _MARKS.items():
        if mark in traits.labels:
            return name, f"label {mark}"
    by_name = _by_name(traits.words, traits.images)
    if by_name is not None:
        return by_name
    if traits.gpus > 1:
        return "training", f"nothing names its purpose; {traits.gpus} GPUs"
    if traits.memory > BIG_MEMORY:
        return "training", "nothing names its purpose; more than 32 GiB of memory"
    if traits.owner_kind in _NEVER_END:
        return "serving", f"nothing names its purpose; a {_NEVER_END[traits.owner_kind]}'s, which never ends"
    return "batch", "nothing names its purpose; one GPU, little memory"


@lru_cache(maxsize=1024)
def _by_name(words: tuple[str, ...], images: tuple[str, ...]) -> tuple[WorkloadClass, str] | None:
    """By what it runs; pods of one template run the same."""
    image = _plain([_path(image) for image in images])
    return _by_words("command", _command_words(words)) or _by_words("image", image)


def _by_words(source: str, text: str) -> tuple[WorkloadClass, str] | None:
    for name, words in _NAMES:
        match = re.search(rf"(?:^| )({words})(?= |$)", text)
        if match is not None:
            return name, f"{source} names {match.group(1)!r}"
    return None


def _command_words(words: Iterable[str]) -> str:
    """Plain words of commands and arguments, options left out: "python -m torch.run" gives "python torch run"."""
    plain = [part for word in words for part in word.split() if not part.startswith("-")]
    return _plain(plain)


def _path(image: str) -> str:
    host, slash, rest = image.partition("/")
    path = rest if slash and ("." in host or ":" in host or host == "localhost") else image
    return re.sub(r"@.*$|:[^/]*$", "", path)


def _plain(parts: Sequence[str]) -> str:
    return " ".join(re.findall(r"[a-z0-9]+", " ".join(parts).lower()))


_ADDED = r"(-[a-f0-9]{6,10})?-[a-z0-9]{5}$|-\d+$"


def made_by(pod: str) -> str:
    """A pod's name without what its controller added: the ReplicaSet's hash and the pod's own, or an ordinal."""
    return re.sub(_ADDED, "", pod)

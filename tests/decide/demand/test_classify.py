"""What a pod is for: article S3's classifier, corrected (W1, E30)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.decide.demand.classify import BIG_MEMORY, SYNONYMS, classify
from pilotlight.facts.workload import PodTraits

GIB = 2**30


def runs(command: str = "", image: str = "acme/app:1", **more: Any) -> PodTraits:
    """A pod that runs a command, by words as a shell splits them."""
    return PodTraits(images=(image,), words=tuple(command.split(" ")) if command else (), **more)


def labelled(value: str, **more: Any) -> PodTraits:
    """A pod with S2's workload label, whatever it runs."""
    return runs("torchrun train.py", labels={"workload-type": value}, **more)


PODS = {
    # The explicit label goes first, in any of its spellings.
    "label training": (runs("jupyter lab", labels={"workload-type": "training"}), "training"),
    "label inference": (labelled("inference"), "serving"),
    "label serving": (labelled("serving"), "serving"),
    "label notebook": (labelled("notebook"), "notebook"),
    "label dev": (labelled("dev"), "notebook"),
    "label batch": (labelled("batch"), "batch"),
    "label hpo": (labelled("hpo"), "batch"),
    "label in capitals": (labelled("Inference"), "serving"),
    "our label before S2's": (
        runs(labels={"pilotlight.dev/workload-class": "batch", "workload-type": "serving"}),
        "batch",
    ),
    "a label that names no class is passed over": (labelled("magic"), "training"),
    # Who made it.
    "a PyTorchJob's worker": (runs(owner_kind="PyTorchJob"), "training"),
    "a Deployment's pod with a neutral name": (runs("sleep 9", owner_kind="ReplicaSet"), "serving"),
    "a StatefulSet's pod with a neutral name": (runs("sleep 9", owner_kind="StatefulSet"), "serving"),
    "a Job's pod with a neutral name": (runs("sleep 9", owner_kind="Job"), "batch"),
    "an MPIJob's worker": (runs("sleep 9", owner_kind="MPIJob"), "training"),
    "a KServe predictor": (runs(labels={"serving.kserve.io/inferenceservice": "bert"}), "serving"),
    "a Kubeflow notebook": (runs(labels={"notebook-name": "alice"}), "notebook"),
    # What it runs.
    "torchrun": (runs("torchrun --nproc-per-node 8 main.py"), "training"),
    "torch.distributed": (runs("python -m torch.distributed.run main.py"), "training"),
    "deepspeed": (runs("deepspeed run.py"), "training"),
    "train.py": (runs("python train.py"), "training"),
    "a fine-tune": (runs("python fine-tune.py"), "training"),
    "jupyter lab": (runs("jupyter lab --ip 0.0.0.0"), "notebook"),
    "a jupyter image": (runs(image="jupyter/pytorch-notebook"), "notebook"),
    "a notebook server is no server": (runs("jupyter-server"), "notebook"),
    "code-server": (runs(image="codercom/code-server:4"), "notebook"),
    "vllm": (runs(image="vllm/vllm-openai:latest"), "serving"),
    "torchserve": (runs("torchserve --start"), "serving"),
    "triton": (runs("tritonserver --model-repository=/models"), "serving"),
    "TF serving": (runs(image="tensorflow/serving:2.15"), "serving"),
    "TGI": (runs(image="ghcr.io/huggingface/text-generation-inference:2"), "serving"),
    "batch inference is batch work": (runs("python batch_inference.py"), "batch"),
    "preprocessing": (runs("python preprocess.py"), "batch"),
    "the command goes before the image": (runs("python train.py", image="jupyter/scipy"), "training"),
    "a script in one shell word": (PodTraits(words=("sh", "-c", "set -e\npython train.py")), "training"),
    # E30: what the article's classifier got wrong.
    "gitlab is no lab": (runs(image="registry.gitlab.com/acme/app:1"), "batch"),
    "an option --labels is no lab": (runs("python main.py --labels a,b"), "batch"),
    "collaborative is no lab": (runs("python collaborative.py"), "batch"),
    "an option names nothing": (runs("python main.py --train-batch-size 32"), "batch"),
    "a registry's port is no tag": (runs(image="localhost:5000/acme/app"), "batch"),
    "a registry's name says nothing": (runs(image="train.example.com/acme/app"), "batch"),
    "a tag says nothing": (runs(image="acme/app:train"), "batch"),
    "no containers": (PodTraits(), "batch"),
    # The fallback by size.
    "two GPUs": (runs(gpus=2), "training"),
    "one GPU": (runs(gpus=1), "batch"),
    "more than 32 GiB": (runs(gpus=1, memory=65536 * 2**20), "training"),
    "32.5 GiB": (runs(gpus=1, memory=int(32.5 * GIB)), "training"),
    "32 GiB exactly": (runs(gpus=1, memory=32 * GIB), "batch"),
}


@pytest.mark.parametrize(("traits", "expected"), PODS.values(), ids=PODS.keys())
def test_class_of_a_pod(traits: PodTraits, expected: str) -> None:
    """A pod's class is told by label, maker, command, image or size, in this order."""
    assert classify(traits)[0] == expected


REASONS = {
    "label": (labelled("inference"), "label workload-type=inference"),
    "command": (runs("python train.py"), "command names 'train'"),
    "image": (runs(image="vllm/vllm-openai"), "image names 'vllm'"),
    "size": (runs(gpus=4), "nothing names its purpose; 4 GPUs"),
    "odd label": (
        runs(labels={"workload-type": "magic"}),
        "nothing names its purpose; one GPU, little memory (label workload-type=magic names no class)",
    ),
}


@pytest.mark.parametrize(("traits", "reason"), REASONS.values(), ids=REASONS.keys())
def test_the_reason(traits: PodTraits, reason: str) -> None:
    """The reason names what told the class."""
    assert classify(traits)[1] == reason


_TRAITS = st.builds(
    PodTraits,
    images=st.lists(st.text(max_size=30), max_size=2).map(tuple),
    words=st.lists(st.text(max_size=20), max_size=4).map(tuple),
    owner_kind=st.sampled_from(["", "Job", "PyTorchJob"]),
    gpus=st.integers(0, 64),
    memory=st.integers(0, 4 * BIG_MEMORY),
)


@given(_TRAITS, st.sampled_from(sorted(SYNONYMS)))
def test_an_explicit_label_beats_every_guess(traits: PodTraits, word: str) -> None:
    """Whatever a pod runs, its label decides; and every pod has a class and a reason."""
    guessed, reason = classify(traits)
    assert guessed in ("training", "serving", "notebook", "batch")
    assert reason
    told = PodTraits(labels={"workload-type": word}, images=traits.images, words=traits.words, gpus=traits.gpus)
    assert classify(told)[0] == SYNONYMS[word]

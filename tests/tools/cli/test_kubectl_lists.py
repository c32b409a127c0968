"""Files of objects: every shape kubectl prints, and one clear line for what is none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes_objects import pod

from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.errors import BadInput
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import CLAIM_REFUSED
from pilotlight.tools.cli.kubectl_lists import read_nodes, read_objects, read_pods

EXAMPLE = Path(__file__).parents[3] / "examples" / "cluster"


def test_a_real_clusters_answers() -> None:
    """The sample cluster has these demands, nodes and findings."""
    seen = view_of(
        read_pods((EXAMPLE / "pods.json").read_bytes(), "pods.json"),
        read_nodes((EXAMPLE / "nodes.json").read_bytes(), "nodes.json"),
        read_objects([]),
        policy=Policy(version=1),
        classify=classify,
    )
    demands = {d.full_name.rsplit("-", 1)[0]: (str(d.shape.gpu), d.shape.workload_class) for d in seen.pending}
    assert demands == {
        "ml-research/no": ("1 GPU", "batch"),
        "ml-research/sweep": ("2 GPUs", "training"),
        "ml-research/train": ("8 GPUs", "training"),
        "ml-research/wrong": ("1 GPU", "batch"),
        "serving/llm-api-59bd599549": ("1 GPU", "serving"),
        "serving/mig": ("1 nvidia.com/mig-1g.10gb", "batch"),
    }
    assert [(n.name, n.pool, n.gpu_model, len(n.gpu_pods)) for n in seen.nodes] == [
        ("gpu-a100-idle", "a100", "A100", 0),
        ("gpu-t4-1", "t4", "T4", 1),
    ]
    assert [f.code for f in seen.findings if f.code != CLAIM_REFUSED] == ["scheduling-gated"]
    assert [
        (f.subject.partition("/")[0], f.message.split(",")[0]) for f in seen.findings if f.code == CLAIM_REFUSED
    ] == [
        ("ml-research", "claims priority 100000"),
        ("ml-research", "claims team research"),
        ("serving", "claims priority 1000000"),
        ("serving", "claims team production"),
    ]


FORMS = {
    "a List": {"kind": "List", "items": [pod()]},
    "a PodList of the raw API": {"kind": "PodList", "items": [{k: v for k, v in pod().items() if k != "kind"}]},
    "a single object": pod(),
    "an empty List": {"kind": "List", "items": []},
}


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_a_list(body: dict[str, Any]) -> None:
    """Lists and single objects are read alike."""
    names = [p.name for p in read_pods(json.dumps(body).encode(), "pods.json")]
    assert names == ([] if body.get("items") == [] else ["team-a/p"])


BAD = {
    "nothing": (b"", "is empty"),
    "cut off": (b'{"kind": "List", "items": [{"ki', "is not JSON"),
    "YAML": (b"kind: List\nitems: []\n", "is not JSON"),
    "NaN": (b'{"kind": "Pod", "metadata": {"name": NaN}}', "is not JSON"),
    "a list of nothing known": (b"[1, 2]", "is a list, not a table"),
    "nodes where pods should be": (
        b'{"kind":"List","items":[{"kind":"Node"}]}',
        "items[0]: a Node where a Pod should be",
    ),
    "no metadata": (b'{"kind":"List","items":[{"kind":"Pod"}]}', "items[0]: metadata is missing"),
    "a number for a name": (b'{"kind":"Pod","metadata":{"name":7}}', "metadata.name: is a number, not a text"),
    "deep nesting": (b'{"items":' * 100_000, "pods.json: "),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD.keys())
def test_bad_files_name_file_and_path(text: bytes, words: str) -> None:
    """What cannot be read is refused in one line that names the file and the place."""
    with pytest.raises(BadInput) as refused:
        read_pods(text, "pods.json")
    assert str(refused.value).startswith("pods.json: ")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(text: bytes) -> None:
    """Whatever stands in a file, it is read or refused."""
    for read in (read_pods, read_nodes):
        try:
            read(text, "file")
        except BadInput:
            continue


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from(["nvidia.com/gpu", "cpu", "memory", "x/y"]), st.text(max_size=6) | st.integers()),
    st.dictionaries(
        st.sampled_from(["pilotlight.dev/gpu-share", "pilotlight.dev/min-gpu-memory"]), st.text(max_size=6)
    ),
    _JSON,
)
def test_odd_pods_are_demand_finding_or_refused(
    limits: dict[str, Any], annotations: dict[str, Any], odd: object
) -> None:
    """A pod with odd values is demand, a finding, or refused with its path; never a crash."""
    one = pod(meta={"annotations": annotations}, tolerations=odd)
    one["spec"]["containers"][0]["resources"] = {"limits": limits}
    try:
        pods = read_pods(json.dumps(one).encode(), "pods.json")
    except BadInput:
        return
    seen = view_of(pods, (), read_objects([]), policy=Policy(version=1), classify=classify)
    assert len(seen.pending) + len(seen.findings) <= 1


@pytest.mark.parametrize(
    ("read", "file"),
    [pytest.param(read_pods, "pods.json", id="a pod"), pytest.param(read_nodes, "nodes.json", id="a node")],
)
def test_what_is_listed_twice_is_refused(read: Callable[[bytes, str], object], file: str) -> None:
    """A pod in two lists that were put together would be bought for twice: its second place is named."""
    items = json.loads((EXAMPLE / file).read_bytes())["items"]
    text = json.dumps({"kind": "List", "items": [*items, items[0]]}).encode()
    with pytest.raises(BadInput, match=rf"items\[{len(items)}\]: \w+ {items[0]['metadata']['name']} is there twice"):
        read(text, file)


def test_a_text_for_a_number_is_told_in_a_persons_words() -> None:
    """Types are named as a person names them, not as Python does."""
    wrong = json.dumps(pod(terminationGracePeriodSeconds="soon")).encode()
    with pytest.raises(BadInput) as refused:
        read_pods(wrong, "pods.json")
    assert "terminationGracePeriodSeconds: is a text, not a number" in str(refused.value)


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-8-sig", "UTF-8 with a byte order mark"), ("utf-16", "UTF-16"), ("utf-16-be", "UTF-16")]
)
def test_a_file_that_powershell_wrote_is_named_by_its_encoding(encoding: str, name: str) -> None:
    """It is refused with the way out, by whatever reads objects."""
    text = ("\ufeff" if encoding == "utf-16-be" else "") + (EXAMPLE / "pods.json").read_text()
    with pytest.raises(BadInput, match=rf"p\.json: is not plain UTF-8 but {name}, as PowerShell writes it; .* cmd"):
        read_pods(text.encode(encoding), "p.json")

"""Rules on pods: keys that no API knows, labels of the wrong object, and GPUs that would be stranded."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pilotlight.facts.labels import INSTANCE_TYPE
from pilotlight.tools.lint.fault import Lint, Site
from pilotlight.tools.lint.manifest_objects import Found, gpus, items, node_terms, pod_labels, pod_spec, value_at

_KEYS = {key.lower(): key for key in (
    "apiVersion", "kind", "metadata", "spec", "labels", "annotations", "name", "namespace", "containers", "resources",
    "limits", "requests", "nodeSelector", "affinity", "nodeAffinity", "tolerations", "template", "env", "image",
)}  # fmt: skip


def workload_rules(found: Sequence[Found], site: Site) -> Iterator[Lint]:
    """All of them, over all objects of a folder."""
    given = {pair for each in found for pair in _node_labels(each)}
    for each in found:
        if not each.api or not each.kind:
            continue
        yield from _keys(each)
        spec = pod_spec(each)
        if spec and (asked := gpus(spec)):
            yield from _stranded(each, spec, asked, site)
            yield from _pod_label(each, spec, given)
            yield from _unequal(each, spec)


def _keys(found: Found) -> Iterator[Lint]:
    """Keys that differ from a field's name by their letters' case alone: the API server refuses or drops them."""
    wrong = sorted({key for key in _all_keys(found.value) if _KEYS.get(key.lower(), key) != key})
    for key in wrong:
        what = f"the key {key} is no field: Kubernetes tells capital letters from small ones"
        yield found.fault("key-case", what, f"write {_KEYS[key.lower()]}")


def _all_keys(value: Any, path: str = "") -> Iterator[str]:
    """Keys of fields; those of labels, annotations and data are the user's own."""
    if isinstance(value, Mapping):
        for key, inside in value.items():
            yield str(key)
            if str(key).lower() not in (
                "labels",
                "annotations",
                "data",
                "stringdata",
                "matchlabels",
                "nodeselector",
                "tags",
            ):
                yield from _all_keys(inside)
    elif isinstance(value, list):
        for each in value:
            yield from _all_keys(each)


def _stranded(found: Found, spec: Mapping[str, Any], asked: int, site: Site) -> Iterator[Lint]:
    """A pod bound to a type with more GPUs than it asks for leaves the others unused, and paid for."""
    for key, values in node_terms(spec):
        sizes = [site.gpus_of.get(value, 0) for value in values]
        if key == INSTANCE_TYPE and sizes and min(sizes) > asked:
            what = f"asks for {asked} of the {min(sizes)} GPUs of {values[0]}: {min(sizes) - asked} would be stranded"
            fix = "allow a type with fewer GPUs, or leave the type to whoever buys"
            yield found.warning("stranded-gpus", what, fix)


def _pod_label(found: Found, spec: Mapping[str, Any], given: set[tuple[str, str]]) -> Iterator[Lint]:
    """A label of the pod asked of the node: nothing in the folder puts it there."""
    labels = pod_labels(found)
    for key, values in node_terms(spec):
        own = str(labels.get(key, ""))
        if own and own in values and (key, own) not in given:
            what = f"wants nodes labelled {key}={own}, and only the pod carries that label here"
            fix = "label the node pool itself at its cloud: a node that is labelled by hand is gone with the next one"
            yield found.warning("node-label", what, fix)


def _node_labels(found: Found) -> Iterator[tuple[str, str]]:
    """Labels that nodes get, as NodePools, eksctl, Config Connector and policies of Pilotlight write them."""
    pools = [found.spec("template", "metadata"), found.spec("nodeConfig")]
    pools += [*items(found.value.get("managedNodeGroups")), *items(found.value.get("nodeGroups"))]
    own = found.value.get("pools")
    pools += list(own.values()) if isinstance(own, Mapping) else []
    pools += [value_at(found.value, "metadata")] if found.kind == "Node" else []
    if found.kind in ("NodePool", "ClusterConfig", "ContainerNodePool", "Node", ""):
        for pool in pools:
            labels = value_at(pool, "labels")
            yield from ((str(k), str(v)) for k, v in labels.items()) if isinstance(labels, Mapping) else ()


def _unequal(found: Found, spec: Mapping[str, Any]) -> Iterator[Lint]:
    for each in items(spec.get("containers")):
        limits, requests = (value_at(each, "resources", half) or {} for half in ("limits", "requests"))
        for key in (
            limits.keys() | requests.keys() if isinstance(limits, Mapping) and isinstance(requests, Mapping) else ()
        ):
            if str(key).endswith("/gpu") and str(requests.get(key, limits.get(key))) != str(limits.get(key)):
                asked, most = requests.get(key), limits.get(key)
                what = f"container {each.get('name', '')} requests {asked} {key} with a limit of {most}"
                yield found.fault("gpu-limits", what, "GPUs are not overcommitted: write the limit alone")

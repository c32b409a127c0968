"""Pod shapes with volumes: classes, claims, zones, and nodes that can attach no more."""

from collections.abc import Iterator
from typing import Any

from agreement_bed import MARK, ONLY
from agreement_objects import HOST, ZONE, Object, Shape, expr, node, other, pod, pods, term


def volumes() -> Iterator[Shape]:
    """Volumes."""
    family = "volumes"

    def kind(name: str, **rest: Any) -> Object:
        return other(
            "StorageClass",
            f"agreement-{name}",
            provisioner=rest.pop("provisioner", "disk.example.test"),
            volumeBindingMode=rest.pop("mode", "WaitForFirstConsumer"),
            **rest,
        )

    def claim(name: str, of: str, mode: str = "ReadWriteOnce", **rest: Any) -> Object:
        spec = {
            "storageClassName": f"agreement-{of}",
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            **rest,
        }
        return other("PersistentVolumeClaim", name, spec=spec)

    def volume(name: str, of: str, zone: str, claims: str = "", mode: str = "ReadWriteOnce", **rest: Any) -> Object:
        spec: Object = {
            "capacity": {"storage": "1Gi"},
            "accessModes": [mode],
            "storageClassName": f"agreement-{of}",
            "csi": {"driver": "disk.example.test", "volumeHandle": name},
        }
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term(expr(ZONE, "In", zone))]}}
        if claims:
            spec["claimRef"] = {"kind": "PersistentVolumeClaim", "name": claims, "namespace": "SPACE"}
        return other("PersistentVolume", f"agreement-{name}", spec={**spec, **rest})

    def uses(name: str) -> Object:
        return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}}]}

    by_hand = {"provisioner": "kubernetes.io/no-provisioner"}
    yield Shape(
        family,
        "a volume in zone-b",
        pods(1, **uses("data")),
        [kind("disk"), volume("pv1", "disk", "zone-b", "data"), claim("data", "disk", volumeName="agreement-pv1")],
    )
    yield Shape(
        family,
        "a volume in a zone that is not sold",
        pods(1, **uses("data")),
        [kind("disk"), volume("pv1", "disk", "zone-z", "data"), claim("data", "disk", volumeName="agreement-pv1")],
    )
    yield Shape(family, "a claim of the first consumer", pods(1, **uses("data")), [kind("disk"), claim("data", "disk")])
    topo = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-c"]}]}]}
    yield Shape(
        family, "allowedTopologies of one zone", pods(1, **uses("data")), [kind("disk", **topo), claim("data", "disk")]
    )
    none = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-z"]}]}]}
    yield Shape(
        family,
        "allowedTopologies of a zone that is not sold",
        pods(1, **uses("data")),
        [kind("disk", **none), claim("data", "disk")],
    )
    yield Shape(
        family,
        "no provisioner, a free volume in zone-b",
        pods(1, **uses("data")),
        [kind("local", **by_hand), volume("pv1", "local", "zone-b"), claim("data", "local")],
    )
    yield Shape(
        family,
        "no provisioner and no volume",
        pods(1, **uses("data")),
        [kind("local", **by_hand), claim("data", "local")],
    )
    yield Shape(
        family,
        "no provisioner, one volume for two claims",
        [pod("a", **uses("one")), pod("b", **uses("two"))],
        [kind("local", **by_hand), volume("pv1", "local", "zone-b"), claim("one", "local"), claim("two", "local")],
    )
    yield Shape(
        family,
        "ReadWriteOncePod that another pod has",
        pods(1, **uses("data")),
        [
            kind("disk"),
            volume("pv1", "disk", "zone-a", "data", "ReadWriteOncePod"),
            claim("data", "disk", "ReadWriteOncePod", volumeName="agreement-pv1"),
            node("agreement-cpu"),
            pod("holder", None, node="agreement-cpu", **uses("data")),
        ],
    )
    yield Shape(
        family,
        "ReadWriteOncePod of two pods that wait",
        [pod("a", **uses("data")), pod("b", **uses("data"))],
        [
            kind("disk"),
            volume("pv1", "disk", "zone-a", "data", "ReadWriteOncePod"),
            claim("data", "disk", "ReadWriteOncePod", volumeName="agreement-pv1"),
        ],
    )
    yield Shape(family, "a claim that is not there", pods(1, **uses("nothing")))
    yield Shape(
        family,
        "a claim that nobody binds",
        pods(1, **uses("data")),
        [kind("now", mode="Immediate"), claim("data", "now")],
    )
    yield Shape(family, "a claim without a class", pods(1, **uses("data")), [claim("data", "", storageClassName="")])
    apart = [
        kind("disk"),
        volume("pv1", "disk", "zone-a", "one"),
        claim("one", "disk", volumeName="agreement-pv1"),
        volume("pv2", "disk", "zone-b", "two"),
        claim("two", "disk", volumeName="agreement-pv2"),
    ]
    both = {"volumes": [*uses("one")["volumes"], *uses("two")["volumes"]]}
    yield Shape(family, "two volumes in two zones", pods(1, **both), apart)
    yield Shape(
        family,
        "an ephemeral volume of one zone",
        pods(1, volumes=[{"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": claim("x", "disk")["spec"]}}}]),
        [kind("disk", **topo)],
    )
    full = node("agreement-full", labels={MARK: "SHAPE"}, **{"nvidia.com/gpu": "4"}, taints=[ONLY])
    limit = other(
        "CSINode",
        "agreement-full",
        spec={"drivers": [{"name": "disk.example.test", "nodeID": "x", "allocatable": {"count": 1}}]},
    )
    used = [
        kind("disk"),
        full,
        limit,
        volume("pv1", "disk", "zone-a", "one"),
        claim("one", "disk", volumeName="agreement-pv1"),
        pod("holder", node="agreement-full", **uses("one")),
    ]
    yield Shape(
        family,
        "a node that can attach no more",
        pods(1, **uses("two")),
        [*used, volume("pv2", "disk", "zone-a", "two"), claim("two", "disk", volumeName="agreement-pv2")],
    )
    local = volume(
        "pv1",
        "local",
        "zone-a",
        "data",
        nodeAffinity={"required": {"nodeSelectorTerms": [term(expr(HOST, "In", "agreement-gone"))]}},
    )
    yield Shape(
        family,
        "a local volume of a node that is gone",
        pods(1, **uses("data")),
        [kind("local", **by_hand), local, claim("data", "local", volumeName="agreement-pv1")],
    )

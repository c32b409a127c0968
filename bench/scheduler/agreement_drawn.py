"""Shapes drawn by hypothesis: a case is plain JSON, made into pods, nodes, claims and rules, and made smaller again."""

import json
import warnings
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from agreement_bed import MARK, ONLY, POOLS
from agreement_claims import GPU, NVIDIA, PART, claim, device_class, exactly
from agreement_objects import HOST, ZONE, Object, Shape, app, expr, near, node, other, pod, required, spread, term

Case = dict[str, Any]
OF = f"device.attributes['{NVIDIA}']"
CARDS = device_class("agreement-cards", "device.driver == 'cards.example.test'")
ASKS: dict[str, list[Any]] = {
    "one": [exactly()],
    "two": [exactly(count=2)],
    "four": [exactly(count=4)],
    "a T4": [exactly(f"{OF}.architecture == 'Turing'")],
    "an A100": [exactly(f"{OF}.productName.contains('A100')")],
    "the large": [exactly(f"device.capacity['{NVIDIA}'].memory.compareTo(quantity('30Gi')) >= 0")],
    "all": [exactly(allocationMode="All")],
    "either": [[exactly(f"{OF}.architecture == 'Hopper'"), exactly(f"{OF}.architecture == 'Ampere'")]],
    "two requests": [exactly(), exactly()],
    "a part": [exactly(f"{OF}.profile == '1g.5gb'", of=PART)],
    "what lacks": [[exactly(f"{OF}.rack == 'r7'"), exactly()]],
}
"""Requests of a claim, by name."""
APPS = ("a", "b")
LATE = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disk.example.test"}


def rules() -> st.SearchStrategy[Case]:
    """A rule on the pods near by, or on labels."""
    where, whom = st.sampled_from(("host", "zone")), st.sampled_from(APPS)
    beside = st.fixed_dictionaries({"rule": st.sampled_from(("with", "apart")), "by": where, "app": whom})
    over = st.fixed_dictionaries(
        {"rule": st.just("spread"), "by": where, "app": whom, "skew": st.integers(1, 2), "domains": st.integers(0, 3)}
    )
    labels = st.fixed_dictionaries(
        {
            "rule": st.just("label"),
            "key": st.sampled_from(("zone", "tier", "host", "present")),
            "how": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt")),
        }
    )
    return st.one_of(beside, beside, over, labels)


def groups(*, claiming: bool) -> st.SearchStrategy[Case]:
    """Pods alike that wait."""
    fields: dict[str, st.SearchStrategy[Any]] = {
        "count": st.integers(1, 4),
        "app": st.sampled_from(APPS),
        "cpu": st.sampled_from(("100m", "100m", "100m", "2", "3500m", "20")),
        "rules": st.one_of(st.just([]), st.lists(rules(), max_size=1), st.lists(rules(), max_size=2)),
    }
    if claiming:
        fields |= {"asks": st.sampled_from(tuple(ASKS)), "gpus": st.just(0), "shared": st.booleans()}
    else:
        fields |= {
            "gpus": st.sampled_from((1, 1, 1, 1, 2, 4, 5)),
            "port": st.sampled_from((0, 0, 0, 80)),
            "borne": st.booleans(),
            "volume": st.sampled_from((*[""] * 6, "late", "zoned", "chosen", "bound", "roomy", "full")),
            "share": st.sampled_from(("", "", "", "0.5")),
        }
    return st.fixed_dictionaries(fields)


def cases() -> st.SearchStrategy[Case]:
    """A whole shape."""
    pools = st.sampled_from(("one", "four", "both", "one zone", "tiers", "tainted"))
    there = st.fixed_dictionaries(
        {
            "zone": st.sampled_from(("zone-a", "zone-b")),
            "gpus": st.sampled_from((0, 0, 1, 4)),
            "runs": st.lists(
                st.fixed_dictionaries(
                    {"app": st.sampled_from(APPS), "gpus": st.integers(0, 1), "rules": st.lists(rules(), max_size=1)}
                ),
                max_size=2,
            ),
        }
    )
    daemon = st.fixed_dictionaries(
        {
            "app": st.sampled_from((*APPS, "agent")),
            "cpu": st.sampled_from(("50m", "1")),
            "port": st.sampled_from((0, 0, 80)),
            "zone": st.sampled_from(("", "", "zone-a")),
            "rules": st.lists(
                st.fixed_dictionaries(
                    {"rule": st.just("apart"), "by": st.sampled_from(("host", "zone")), "app": st.sampled_from(APPS)}
                ),
                max_size=1,
            ),
        }
    )
    plain = {
        "claims": st.just(False),
        "pools": pools,
        "groups": st.lists(groups(claiming=False), min_size=1, max_size=2),
        "nodes": st.lists(there, max_size=2),
        "daemons": st.lists(daemon, max_size=1),
    }
    claimed = plain | {
        "claims": st.just(True),
        "pools": st.sampled_from(("both", "devices", "parts")),
        "groups": st.lists(groups(claiming=True), min_size=1, max_size=2),
        "nodes": st.just([]),
    }
    return st.one_of(*[st.fixed_dictionaries(plain)] * 3, st.fixed_dictionaries(claimed))


def drawn(count: int, number: int) -> list[Case]:
    """So many different cases, the same ones for the same number."""
    found: dict[str, Case] = {}

    @seed(number)
    @settings(
        max_examples=count + count // 4,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def collect(case: Case) -> None:
        found.setdefault(json.dumps(case, sort_keys=True), case)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return list(found.values())[:count]


def _pools(name: str) -> Object:
    one, four = POOLS["one"], POOLS["four"]
    a100 = {"instance_type": "two.a100", "zones": ["zone-a"]}
    return {
        "one": {"one": one},
        "four": {"four": four},
        "both": {"one": one, "four": four},
        "one zone": {"one": {**one, "zones": ["zone-a"]}},
        "tiers": {"one": {**one, "labels": {"tier": "7"}}, "four": {**four, "labels": {"tier": "3"}}},
        "tainted": {
            "one": {**one, "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
            "four": four,
        },
        "devices": {"one": one, "four": four, "a100": a100},
        "parts": {"mig": {**a100, "slices": {"nvidia.com/mig-1g.5gb": 14}}},
    }[name]


def shape_of(case: Case) -> Shape:
    """The objects of a case."""
    there: list[Object] = [GPU, PART] if case["claims"] else []
    waiting: list[Object] = []
    for n, daemon in enumerate(case["daemons"]):
        there.append(_daemon(f"d{n}", daemon))
    for n, each in enumerate(case["nodes"]):
        gpus = {"nvidia.com/gpu": str(each["gpus"])} if each["gpus"] else {}
        name = f"agreement-n{n}"
        there.append(node(name, each["zone"], labels={MARK: "SHAPE"}, taints=[ONLY], **gpus))
        held = 0
        for k, run in enumerate(each["runs"]):
            wants = min(run["gpus"], each["gpus"] - held)
            held += wants
            there.append(pod(f"run-{n}-{k}", wants, labels={"app": run["app"]}, node=name, **_spec(run["rules"])))
    for n, group in enumerate(case["groups"]):
        made, pods = _group(f"g{n}", group, claims=case["claims"])
        there += made
        waiting += pods
    return Shape("drawn", "drawn", waiting, there, _pools(case["pools"]), claims=case["claims"])


def _daemon(name: str, daemon: Case) -> Object:
    ports = [{"containerPort": daemon["port"], "hostPort": daemon["port"]}] if daemon["port"] else []
    spec = pod("x", None, requests={"cpu": daemon["cpu"]}, ports=ports, **_spec(daemon["rules"]))["spec"]
    spec |= {"tolerations": [{"operator": "Exists"}]}
    spec |= {"nodeSelector": {ZONE: daemon["zone"]}} if daemon["zone"] else {}
    labels = {"app": daemon["app"], "daemons": name}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return other("DaemonSet", name, spec={"selector": {"matchLabels": labels}, "template": template})


def _spec(rules_: list[Case]) -> Object:
    """Rules as they stand in a pod's spec."""
    affinity: Object = {}
    spreads: list[Object] = []
    terms: list[Object] = []
    for rule in rules_:
        by = {"host": HOST, "zone": ZONE}.get(rule.get("by", ""), "")
        if rule["rule"] == "spread" and any(one["topologyKey"] == by for one in spreads):
            continue  # An API server takes one such constraint a key.
        if rule["rule"] == "spread":
            least = {"minDomains": rule["domains"]} if rule["domains"] else {}
            spreads.append(spread(by, app(rule["app"]), maxSkew=rule["skew"], **least))
        elif rule["rule"] == "label":
            terms.append(_label(rule))
        else:
            kind = {"with": "podAffinity", "apart": "podAntiAffinity"}[rule["rule"]]
            one = near(kind, by, app(rule["app"]))[kind]
            (key, more), *_ = one.items()
            affinity.setdefault(kind, {}).setdefault(key, []).extend(more)
    if terms:
        affinity |= required(term(*terms))
    return {
        **({"affinity": affinity} if affinity else {}),
        **({"topologySpreadConstraints": spreads} if spreads else {}),
    }


def _label(rule: Case) -> Object:
    key = {"zone": ZONE, "tier": "tier", "host": HOST, "present": "nobody"}[rule["key"]]
    value = {"zone": "zone-b", "tier": "5", "host": "no-such-node", "present": "x"}[rule["key"]]
    how = "Exists" if rule["how"] == "Gt" and rule["key"] != "tier" else rule["how"]
    return expr(key, how, *([value] if how in ("In", "NotIn", "Gt") else []))


def _group(name: str, group: Case, *, claims: bool) -> tuple[list[Object], list[Object]]:
    """What its pods need, and the pods."""
    port = group.get("port")
    spec: Object = {**_spec(group["rules"]), "requests": {"cpu": group["cpu"]}, "labels": {"app": group["app"]}}
    spec |= {"ports": [{"containerPort": port, "hostPort": port}]} if port else {}
    spec |= {"tolerations": [{"key": "dedicated", "operator": "Exists"}]} if group.get("borne") else {}
    there: list[Object] = []
    if claims:
        shared = group["shared"] and group["count"] > 1
        there.append(
            claim(*ASKS[group["asks"]], kind="ResourceClaim" if shared else "ResourceClaimTemplate", name=name)
        )
        ref = {"resourceClaimName": name} if shared else {"resourceClaimTemplateName": name}
        spec["resourceClaims"] = [{"name": "gpus", **ref}]
    if group.get("volume"):
        there += volume_of(name, group["volume"])
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    made = [pod(f"{name}-{n}", group["gpus"] or None, **json.loads(json.dumps(spec))) for n in range(group["count"])]
    if group.get("share") and group["gpus"] == 1:
        for one in made:
            one["metadata"]["annotations"] = {"pilotlight.dev/gpu-share": group["share"]}
    return there, made


def volume_of(name: str, kind: str) -> list[Object]:
    """A claim of one volume, with its class and what else it needs."""
    of = f"agreement-{name}"
    tells = kind in ("roomy", "full")
    driver = f"{of}.example.test" if tells else LATE["provisioner"]
    zoned = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-b"]}]}]}
    made = [other("StorageClass", of, **{**LATE, "provisioner": driver}, **(zoned if kind == "zoned" else {}))]
    spec: Object = {
        "storageClassName": of,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
    }
    if tells:
        size = "100Gi" if kind == "roomy" else "1Gi"
        made.append({"apiVersion": "storage.k8s.io/v1", **other("CSIDriver", driver, spec={"storageCapacity": True})})
        made[-1]["apiVersion"] = "storage.k8s.io/v1"
        topology = {"matchLabels": {ZONE: "zone-b"}}
        room = other("CSIStorageCapacity", f"room-{name}", storageClassName=of, nodeTopology=topology, capacity=size)
        made.append({**room, "apiVersion": "storage.k8s.io/v1"})
    if kind == "bound":
        place = {"required": {"nodeSelectorTerms": [term(expr(ZONE, "In", "zone-b"))]}}
        held = {"kind": "PersistentVolumeClaim", "name": name, "namespace": "SPACE"}
        volume: Object = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "csi": {"driver": driver, "volumeHandle": of},
            "nodeAffinity": place,
            "claimRef": held,
        }
        made.append(other("PersistentVolume", of, spec=volume))
        spec["volumeName"] = of
    notes = {"volume.kubernetes.io/selected-node": "no-such-node"} if kind == "chosen" else {}
    return [*made, other("PersistentVolumeClaim", name, spec=spec, meta={"annotations": notes})]


def smaller(case: Case) -> list[Case]:
    """The case with one part less, each in its turn."""
    found: dict[str, Case] = {}
    for one in _less(case):
        found.setdefault(json.dumps(one, sort_keys=True), one)
    found.pop(json.dumps(case, sort_keys=True), None)
    return list(found.values())[:40]


def _less(value: Any, floor: int = 0) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, each in value.items():
            for less in _less(each, 1 if key == "groups" else 0):
                yield {**value, key: less}
            if key in ("count", "gpus", "domains") and isinstance(each, int) and each > (0 if key == "domains" else 1):
                yield {**value, key: each - 1}
            if key in ("volume", "share") and each:
                yield {**value, key: ""}
            if key in ("port",) and each:
                yield {**value, key: 0}
            if key == "cpu" and each != "100m":
                yield {**value, key: "100m"}
    elif isinstance(value, list):
        for n in range(len(value)):
            if len(value) > floor:
                yield [*value[:n], *value[n + 1 :]]
            for less in _less(value[n]):
                yield [*value[:n], less, *value[n + 1 :]]

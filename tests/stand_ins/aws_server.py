"""Auto Scaling and EC2 over a small world: a group for each of its pools, and the instances that they launch.

Each call is validated by botocore's model and by its signature, each answer read back by botocore. ``faults`` are
taken one a call, in order: what the server does instead of, or after, what was asked.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from typing import Any
from urllib.parse import parse_qsl

from aws_wire_format import (
    read_form,
    read_json,
    read_rest,
    service_of,
    signature_holds,
    write_answer,
    write_json,
    write_rest,
)
from civo_server import Fault

from pilotlight.errors import NoCapacity, PilotlightError, QuotaExceeded
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_nodes import WorldNode

REGION, EKS, ZONE = "eu-west-1", "prod", "eu-west-1a"
KEY, SECRET, SESSION = "AKIAPLANTED", "aws-planted-secret-51c9", "aws-planted-session-77d0"
ROLE = "arn:aws:iam::210987654321:role/pilotlight"
"""A role of another account, which may be taken."""
OTHER = "ASIAOTHER00000000"
"""The key of whoever took it."""
SECRETS = {KEY: SECRET, OTHER: "other"}
KEYS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SESSION}

CODES: dict[type[PilotlightError], str] = {
    NoCapacity: "InsufficientInstanceCapacity",
    QuotaExceeded: "VcpuLimitExceeded",
}


JSON_SERVICES = {
    "AWSInsightsIndexService": "ce",
    "AWSPriceListService": "pricing",
    "ServiceQuotasV20190624": "service-quotas",
}
"""The services that are called by JSON, by what their calls are named by."""


_WOULD_VIOLATE = (
    "Terminating instance without replacement will violate group's min size constraint. Either set "
    "shouldDecrementDesiredCapacity flag to false or lower group's min size."
)


def _called(target: str, form: Mapping[str, str]) -> tuple[str, str]:
    """The service and the call of a request."""
    name, _, action = target.partition(".")
    return (service_of(form), form["Action"]) if form else (JSON_SERVICES[name], action)


class Refused(Exception):
    """An error answer."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Aws:
    """The account. ``calls`` are (action, values) as they came; ``extra`` are further fields of a pool's group.

    ``signers`` are the keys that signed the requests.

    ``reserved_instances`` (None without the right), ``plans`` and their ``rates`` are its commitments,
    ``unused`` what Cost Explorer says went unused of a plan by day (None without the right), ``elsewhere`` what runs in
    no pool.

    Pools that the world has reserved run on a reservation each, in ``blocks`` until a moment; ``reservations`` are
    others, ``templates`` what launch templates say of them. ``listed`` is the Price List, None without the right to it;
    ``spot`` is what zones ask; ``quotas`` are Service Quotas by name, None without that right. ``versions`` of the
    launch template made instances, else its third.
    ``cores`` are the vCPUs of types. ``reuse`` are pools whose warm pool takes nodes back, with its sizes, by AWS's
    names; their nodes are protected but the ``unprotected``; ``refilled`` counts what AWS launched into one by itself.
    Where it ``protects``, all nodes are, and a size below what is there takes none; else to ask for one is a mistake.
    Such pools are plain groups: the warm pool of a node group, in ``eks_warm``, is set by EKS alone.
    ``ailing`` are the health issues of pools' node groups, ``kept`` what EKS keeps of them; ``updates`` of node groups
    end so. ``policies``, ``scheduled_actions`` and ``refreshes`` are those of pools' groups.
    ``scheduled`` are the events of instances, as EC2 describes them; without the right to that it ``tells`` nothing.
    ``at_once`` groups take LaunchInstances; the others have a launch configuration, and try on by themselves.
    """

    def __init__(self, world: World, *, at_once: bool = True, eks: bool = True) -> None:
        self.world, self.at_once, self.eks = world, at_once, eks
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.signers: list[str] = []
        self.faults: list[Fault] = []
        self.extra: dict[str, dict[str, Any]] = {}
        self.failed: list[dict[str, Any]] = []
        self.hooks: dict[str, list[str]] = {}
        self.waiting: set[str] = set()
        self.warming: dict[str, list[str]] = {}
        self.reuse: dict[str, dict[str, int]] = {}
        self.unprotected: set[str] = set()
        self.protects = False
        self.refilled = 0
        self.ailing: dict[str, list[dict[str, Any]]] = {}
        self.eks_warm: dict[str, dict[str, Any]] = {}
        self.kept: dict[str, dict[str, Any]] = {}
        self.policies: dict[str, list[dict[str, Any]]] = {}
        self.scheduled_actions: dict[str, list[str]] = {}
        self.refreshes: dict[str, list[str]] = {}
        self.updates: list[dict[str, Any]] = []
        self.scheduled: dict[str, list[dict[str, Any]]] = {}
        self.tells = True
        self.reservations: list[dict[str, Any]] = []
        self.reserved_instances: list[dict[str, Any]] | None = []
        self.plans: list[dict[str, Any]] = []
        self.rates: dict[str, str] | None = {}
        self.unused: dict[str, list[str]] | None = {}
        self.elsewhere: list[dict[str, Any]] = []
        self.templates: dict[str, dict[str, Any]] = {}
        self.blocks: dict[str, datetime] = {}
        self.quotas: dict[str, int] | None = {}
        self.cores: dict[str, int] = {}
        self.versions: dict[str, str] = {}
        self.listed: dict[str, str] | None = {}
        self.spot: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.lock = threading.RLock()

    def names(self) -> dict[str, str]:
        """What the policy calls each pool at AWS: its node group, or its group."""
        return {name: f"{name}-nodes" for name in self.world.fleet.pools}

    def group_name(self, pool: str) -> str:
        """As EKS names the group of a node group, or the name itself."""
        managed = self.eks and pool not in self.reuse
        return f"eks-{pool}-nodes-0a1b2c3d-1111-2222-3333-444455556666" if managed else f"{pool}-nodes"

    def changes(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls that change something."""
        return [call for call in self.calls if not call[0].startswith(("Describe", "List"))]

    def answer(self, action: str, asked: dict[str, Any]) -> dict[str, Any]:
        """What AWS says, and does. Raises ``Refused``."""
        with self.lock:
            found: dict[str, Any] = getattr(self, f"_{action}")(asked)
            return found

    def _DescribeAutoScalingGroups(self, asked: dict[str, Any]) -> dict[str, Any]:
        groups = [self._group(pool) for pool in self.world.fleet.pools]
        names = asked.get("AutoScalingGroupNames")
        groups = [g for g in groups if names is None or g["AutoScalingGroupName"] in names]
        for rule in asked.get("Filters", ()):
            key = rule["Name"].removeprefix("tag:")
            groups = [g for g in groups if any(t["Key"] == key and t["Value"] in rule["Values"] for t in g["Tags"])]
        return {"AutoScalingGroups": groups}

    def _group(self, pool: str) -> dict[str, Any]:
        group = self.group_name(pool)
        managed = self.eks and pool not in self.reuse
        tags = {"eks:cluster-name": EKS, "eks:nodegroup-name": f"{pool}-nodes"} if managed else {}
        template = (
            {"LaunchTemplate": {"LaunchTemplateName": f"{pool}-template"}}
            if self.at_once
            else {"LaunchConfigurationName": pool}
        )
        return {
            "AutoScalingGroupName": group,
            "MinSize": 0,
            "MaxSize": 100,
            "DesiredCapacity": self.world.fleet.desired[pool],
            "DefaultCooldown": 300,
            "AvailabilityZones": [ZONE],
            "HealthCheckType": "EC2",
            "CreatedTime": self.world.moment(0),
            "Instances": [self._instance(node) for node in self._nodes(pool)],
            "Tags": [{"Key": key, "Value": value, "ResourceId": group} for key, value in tags.items()],
            **template,
            **self._warm(pool),
            **self._into(pool),
            **self.extra.get(pool, {}),
        }

    def _into(self, pool: str) -> dict[str, Any]:
        """Where a group launches whose pool the world has reserved."""
        if self.world.fleet.pools[pool].paid is None:
            return {}
        target = {"CapacityReservationIds": [f"cr-{pool}"]}
        only = {"CapacityReservationPreference": "capacity-reservations-only", "CapacityReservationTarget": target}
        return {"CapacityReservationSpecification": only}

    def _DescribeCapacityReservations(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = [*self.reservations, *(self._reservation(p) for p in self.world.fleet.pools.values() if p.paid)]
        if ids := asked.get("CapacityReservationIds"):
            found = [one for one in found if one["CapacityReservationId"] in ids]
        for rule in asked.get("Filters", ()):
            key = {"state": "State", "instance-type": "InstanceType"}[rule["Name"]]
            found = [one for one in found if one[key] in rule["Values"]]
        return {"CapacityReservations": found}

    def _DescribeReservedInstances(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self.reserved_instances is None:
            raise Refused(403, "UnauthorizedOperation", "You are not authorized to perform this operation.")
        found = self.reserved_instances
        for rule in asked["Filters"]:
            key = {"state": "State", "instance-type": "InstanceType"}[rule["Name"]]
            found = [one for one in found if one[key] in rule["Values"]]
        return {"ReservedInstances": found}

    def _DescribeSavingsPlans(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked == {"states": ["active"]}
        return {"savingsPlans": self.plans}

    def _GetSavingsPlansUtilization(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Cost Explorer: of each day, what went unused; the first is of before the plan."""
        (arn,) = asked["Filter"]["Dimensions"]["Values"]
        assert (asked["Granularity"], asked["Filter"]["Dimensions"]["Key"]) == ("DAILY", "SAVINGS_PLAN_ARN")
        if self.unused is None:
            raise Refused(400, "AccessDeniedException", "not authorized to perform: ce:GetSavingsPlansUtilization")
        start = datetime.fromisoformat(asked["TimePeriod"]["Start"])
        days = [("0", "0"), *(("240", left) for left in self.unused.get(arn, ()))]
        told = [
            {
                "TimePeriod": {
                    "Start": f"{start + timedelta(days=n):%F}",
                    "End": f"{start + timedelta(days=n + 1):%F}",
                },
                "Utilization": {"TotalCommitment": total, "UnusedCommitment": left},
            }
            for n, (total, left) in enumerate(days)
        ]
        return {"SavingsPlansUtilizationsByTime": told, "Total": {"Utilization": {}}}

    def _DescribeSavingsPlanRates(self, asked: dict[str, Any]) -> dict[str, Any]:
        wanted = {rule["name"]: rule["values"] for rule in asked["filters"]}
        assert wanted.keys() - {"instanceType"} == {"region", "productDescription", "tenancy"}
        if self.rates is None:
            raise Refused(403, "AccessDeniedException", "not authorized: savingsplans:DescribeSavingsPlanRates")
        rates = {kind: usd for kind, usd in self.rates.items() if kind in wanted.get("instanceType", [kind])}
        told = list(rates.items())[bool(asked.get("nextToken")) :]
        rows = [{"rate": rate, "properties": [{"name": "instanceType", "value": kind}]} for kind, rate in told]
        more = {"nextToken": "more"} if len(told) > 1 and not asked.get("nextToken") else {}
        return {"savingsPlanId": asked["savingsPlanId"], "searchResults": rows[:1] if more else rows, **more}

    def _reservation(self, pool: WorldPool) -> dict[str, Any]:
        used = len(self._nodes(pool.name))
        block = self.blocks.get(pool.name)
        ends = {"ReservationType": "capacity-block", "EndDateType": "limited", "EndDate": block} if block else {}
        return reservation(f"cr-{pool.name}", pool.instance_type, pool.paid or 0, (pool.paid or 0) - used, **ends)

    def _AssumeRole(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["RoleArn"] != ROLE:
            raise Refused(403, "AccessDenied", f"{SESSION} may not take {asked['RoleArn']}")
        keys = {"AccessKeyId": OTHER, "SecretAccessKey": SECRETS[OTHER], "SessionToken": "session"}
        return {"Credentials": {**keys, "Expiration": datetime.now(UTC) + timedelta(hours=1)}}

    def _GetProducts(self, asked: dict[str, Any]) -> dict[str, Any]:
        wanted = {rule["Field"]: rule["Value"] for rule in asked["Filters"]}
        if "volumeApiName" in wanted:
            assert wanted["productFamily"] == "Storage"
            return self._listed(wanted["volumeApiName"], "GB-Mo")
        assert (wanted["operatingSystem"], wanted["tenancy"], wanted["preInstalledSw"]) == ("Linux", "Shared", "NA")
        return self._listed(wanted["instanceType"], "Hrs")

    def _listed(self, name: str, unit: str) -> dict[str, Any]:
        if self.listed is None:
            raise Refused(400, "AccessDeniedException", "not authorized to perform: pricing:GetProducts")
        usd = self.listed.get(name)
        price = {"unit": unit, "pricePerUnit": {"USD": usd}}
        terms = {"OnDemand": {"sku.term": {"priceDimensions": {"sku.term.rate": price}}}}
        return {"PriceList": [json.dumps({"product": {}, "terms": terms})] if usd else []}

    def _ListServiceQuotas(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["ServiceCode"] == "ec2"
        if self.quotas is None:
            raise Refused(400, "AccessDeniedException", "not authorized to perform: servicequotas:ListServiceQuotas")
        first, rest = dict(list(self.quotas.items())[:1]), dict(list(self.quotas.items())[1:])
        told = rest if "NextToken" in asked else first
        more = {"NextToken": "more"} if rest and "NextToken" not in asked else {}
        return {"Quotas": [{"QuotaName": name, "Value": float(value)} for name, value in told.items()], **more}

    def _DescribeSpotPriceHistory(self, asked: dict[str, Any]) -> dict[str, Any]:
        at = self.world.moment(0)
        told = [(name, zone, usd) for name in asked["InstanceTypes"] for zone, usd in self.spot.get(name, {}).items()]
        keys = ("InstanceType", "AvailabilityZone", "SpotPrice", "Timestamp")
        return {"SpotPriceHistory": [dict(zip(keys, (*each, at), strict=True)) for each in told]}

    def _DescribeLaunchTemplateVersions(self, asked: dict[str, Any]) -> dict[str, Any]:
        wish = self.templates[asked["LaunchTemplateId"]]
        return {"LaunchTemplateVersions": [{"LaunchTemplateData": {"CapacityReservationSpecification": wish}}]}

    def _nodes(self, pool: str) -> list[WorldNode]:
        return [node for node in self.world.nodes.values() if node.pool == pool]

    def _instance(self, node: WorldNode) -> dict[str, Any]:
        return {
            "InstanceId": node.id,
            "AvailabilityZone": ZONE,
            "LifecycleState": "Terminating:Wait" if self._scaled_in(node) else "InService",
            "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": node.pool in self.reuse and node.id not in self.unprotected,
            "LaunchTemplate": {"LaunchTemplateId": "lt-1", "Version": self.versions.get(node.id, "3")},
        }

    def _scaled_in(self, node: WorldNode) -> bool:
        """Whether its group ends a node that the world takes: one of spot, and one with an event, EC2 takes itself."""
        by_ec2 = node.capacity_type == "spot" or node.id in self.scheduled
        return node.doomed_s is not None and (not by_ec2 or node.id in self.waiting)

    def _DescribeSpotInstanceRequests(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self.tells:
            raise Refused(403, "UnauthorizedOperation", "You are not authorized to perform this operation.")
        nodes = [self.world.nodes[id.removeprefix("sir-")] for id in asked.get("SpotInstanceRequestIds", ())]
        codes = ("fulfilled", "marked-for-termination")
        taken = [codes[node.doomed_s is not None and not self._scaled_in(node)] for node in nodes]
        return {"SpotInstanceRequests": [{"Status": {"Code": code}} for code in taken]}

    def _DescribeInstanceStatus(self, asked: dict[str, Any]) -> dict[str, Any]:
        if not self.tells:
            raise Refused(403, "UnauthorizedOperation", "You are not authorized to perform this operation.")
        return {
            "InstanceStatuses": [
                {"InstanceId": i, "Events": self.scheduled.get(i, [])} for i in asked.get("InstanceIds", ())
            ]
        }

    def _DescribeWarmPool(self, asked: dict[str, Any]) -> dict[str, Any]:
        pool = self._pool(asked["AutoScalingGroupName"])
        able = [node.id for node in self.world.fleet.able(self.world.fleet.machine(pool), self.world.now_s)]
        stopped = [node.id for node in self._stopped(pool)]
        states = [(id, "Warmed:Stopped" if id in able else "Warmed:Pending") for id in stopped]
        ready = [
            {
                "InstanceId": id,
                "AvailabilityZone": ZONE,
                "LifecycleState": state,
                "HealthStatus": "Healthy",
                "ProtectedFromScaleIn": False,
            }
            for id, state in [*states, *((id, "Warmed:Pending") for id in self.warming.get(pool, ()))]
        ]
        return {"WarmPoolConfiguration": {"MinSize": 0, "PoolState": "Stopped"}, "Instances": ready}

    def _stopped(self, pool: str) -> list[WorldNode]:
        return [node for node in self.world.fleet.standing.values() if node.pool == pool]

    def _warm(self, pool: str) -> dict[str, Any]:
        size = len(self._stopped(pool)) + len(self.warming.get(pool, ()))
        if pool in self.reuse:
            config = {**self.reuse[pool], "PoolState": "Stopped", "InstanceReusePolicy": {"ReuseOnScaleIn": True}}
            return {"WarmPoolConfiguration": config, "WarmPoolSize": size, "NewInstancesProtectedFromScaleIn": True}
        if pool in self.eks_warm:
            return {"WarmPoolConfiguration": self.eks_warm[pool], "WarmPoolSize": size}
        warm = {"WarmPoolConfiguration": {"MinSize": 0, "PoolState": "Stopped"}, "WarmPoolSize": size}
        return warm if size else {}

    def _DescribeScalingActivities(self, asked: dict[str, Any]) -> dict[str, Any]:
        group = asked["AutoScalingGroupName"]
        return {"Activities": [each for each in self.failed if each["AutoScalingGroupName"] == group]}

    def _DescribeInstances(self, asked: dict[str, Any]) -> dict[str, Any]:
        rules = {rule["Name"]: rule["Values"] for rule in asked["Filters"]}
        assert rules.keys() in ({"instance-id"}, {"instance-state-name", "instance-type"})
        ids, like = rules.get("instance-id"), rules.get("instance-type", ["*"])
        there = [node for node in self.world.nodes.values() if ids is None or node.id in ids]
        instances = [
            {"InstanceId": n.id, "InstanceType": n.instance_type, "LaunchTime": self.world.moment(n.launched_s)}
            | {"CpuOptions": {"CoreCount": self.cores.get(n.instance_type, 0), "ThreadsPerCore": 1}}
            | ({"CapacityReservationId": f"cr-{n.pool}"} if self.world.fleet.pools[n.pool].paid else {})
            | {"State": {"Code": 16, "Name": "running" if n.joined else "pending"}}
            | ({"SpotInstanceRequestId": f"sir-{n.id}"} if n.capacity_type == "spot" else {})
            for n in there
            if any(fnmatch(n.instance_type, pattern) for pattern in like)
        ]
        others = self.elsewhere if ids is None else []
        instances += [one for one in others if any(fnmatch(one["InstanceType"], pattern) for pattern in like)]
        return {"Reservations": [{"ReservationId": "r", "Instances": [one]} for one in instances]}

    def _DescribeInstanceTypes(self, asked: dict[str, Any]) -> dict[str, Any]:
        known = [name for name in asked["InstanceTypes"] if name in self.cores]
        return {
            "InstanceTypes": [{"InstanceType": name, "VCpuInfo": {"DefaultVCpus": self.cores[name]}} for name in known]
        }

    def _LaunchInstances(self, asked: dict[str, Any]) -> dict[str, Any]:
        known = self.tokens.get(asked["ClientToken"])
        if known is not None:
            if known[0] != asked:
                raise Refused(400, "IdempotentParameterMismatch", "the token was used for another request")
            return known[1]
        if not self.at_once:
            raise Refused(400, "ValidationError", "LaunchInstances needs a launch template")
        if any("-az" in zone for zone in asked.get("AvailabilityZones", ())):
            raise Refused(
                400, "ValidationError", "AvailabilityZones takes names of zones, AvailabilityZoneIds their ids"
            )
        pool, count = self._pool(asked["AutoScalingGroupName"]), asked["RequestedCapacity"]
        before = set(self.world.nodes)
        errors = self._launch(pool, count, (asked.get("AvailabilityZones") or [""])[0])
        came = sorted(set(self.world.nodes) - before)
        answer = {
            "AutoScalingGroupName": asked["AutoScalingGroupName"],
            "ClientToken": asked["ClientToken"],
            "Instances": [{"AvailabilityZone": ZONE, "MarketType": "OnDemand", "InstanceIds": came}] if came else [],
            "Errors": errors,
        }
        self.tokens[asked["ClientToken"]] = (asked, answer)
        return answer

    def _launch(self, pool: str, count: int, zone: str = "") -> list[dict[str, Any]]:
        if (said := self._over_quota(pool, count)) is not None:
            return [{"AvailabilityZone": ZONE, "ErrorCode": "VcpuLimitExceeded", "ErrorMessage": said}]
        try:
            self.world.launch(pool, count, zone)
        except PilotlightError as no:
            code = CODES.get(type(no), "InternalFailure")
            return [{"AvailabilityZone": ZONE, "ErrorCode": code, "ErrorMessage": str(no)}]
        return []

    def _over_quota(self, pool: str, count: int) -> str | None:
        """As EC2 says it where so many more would be above the account's quota of their family."""
        kind = self.world.fleet.pools[pool].instance_type
        family = f"Running On-Demand {kind[:1].upper()}"
        limit = next((most for name, most in (self.quotas or {}).items() if name.startswith(family)), None)
        running = sum(self.cores.get(node.instance_type, 0) for node in self.world.nodes.values())
        if limit is None or running + count * self.cores.get(kind, 0) <= limit:
            return None
        return (
            f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance "
            "bucket that the specified instance type belongs to."
        )

    def _SetDesiredCapacity(self, asked: dict[str, Any]) -> dict[str, Any]:
        group, to = asked["AutoScalingGroupName"], asked["DesiredCapacity"]
        pool = self._pool(group)
        have = len(self._nodes(pool))
        if pool in self.reuse and to < self.world.fleet.desired[pool]:
            return self._scale_in(pool, to)
        if to < have and self.protects:
            self.world.fleet.desired[pool] = to
            return {}
        assert to >= have, "the group would have a victim to choose"
        if errors := self._launch(pool, to - have):
            self.failed.append(activity(group, f"{errors[0]['ErrorCode']}: none left", self.world.clock.now()))
        self.world.fleet.desired[pool] = to
        self._fill(pool)
        return {}

    def _scale_in(self, pool: str, to: int) -> dict[str, Any]:
        """A smaller group returns nodes to its warm pool, those alone that nothing protects."""
        exposed = [node for node in self._nodes(pool) if node.id in self.unprotected]
        for node in exposed[: self.world.fleet.desired[pool] - to]:
            self.world.stop(node.id)
        self.world.fleet.desired[pool] = to
        self._fill(pool)
        return {}

    def _fill(self, pool: str) -> None:
        """AWS keeps a warm pool at its size: what is too many ends, what is missing is launched there."""
        if pool not in self.reuse:
            return
        sizes = self.reuse[pool]
        most = max(sizes["MaxGroupPreparedCapacity"] - self.world.fleet.desired[pool], sizes["MinSize"], 0)
        for node in self._stopped(pool)[most:]:
            self.world.terminate(node.id, "its warm pool is too large")
        self.refilled += max(0, most - len(self._stopped(pool)))

    def _PutWarmPool(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert (asked["PoolState"], asked["InstanceReusePolicy"]) == ("Stopped", {"ReuseOnScaleIn": True})
        pool = self._pool(asked["AutoScalingGroupName"])
        if self.eks and pool not in self.reuse:
            raise Refused(400, "ValidationError", "the warm pool of a managed node group is changed by Amazon EKS")
        self.reuse[pool] = {key: asked[key] for key in ("MaxGroupPreparedCapacity", "MinSize")}
        self._fill(pool)
        return {}

    def _DeleteWarmPool(self, asked: dict[str, Any]) -> dict[str, Any]:
        pool = self._pool(asked["AutoScalingGroupName"])
        self.reuse.pop(pool, None)
        for node in self._stopped(pool):
            self.world.terminate(node.id, "its warm pool is gone")
        return {}

    def _node_group(self, name: str) -> str:
        found = next((pool for pool in self.world.fleet.pools if f"{pool}-nodes" == name), None)
        if found is None:
            raise Refused(404, "ResourceNotFoundException", f"No node group found for name: {name}.")
        return found

    def _DescribeNodegroup(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = asked["nodegroupName"]
        pool = self._node_group(name)
        kept = {"status": "ACTIVE", "nodeRepairConfig": {"enabled": False}, **self.kept.get(pool, {})}
        return {"nodegroup": {"nodegroupName": name, "health": {"issues": self.ailing.get(pool, [])}, **kept}}

    def _UpdateNodegroupConfig(self, asked: dict[str, Any]) -> dict[str, Any]:
        """An update sets the group by what EKS keeps of it: what was changed at Auto Scaling meanwhile is undone."""
        pool = self._node_group(asked["nodegroupName"])
        assert asked["clientRequestToken"]
        kept = self.kept.setdefault(pool, {})
        sizes = {"minSize": 0, "maxSize": 100, **kept.get("scalingConfig", {}), **asked.get("scalingConfig", {})}
        wants = sizes.pop("desiredSize", self.world.fleet.desired[pool])
        if not sizes["minSize"] <= wants <= sizes["maxSize"]:
            raise Refused(400, "InvalidParameterException", f"{wants} is not within {sizes}")
        if not self.updates:
            self.updates.append({"id": "u-1", "status": "Successful"})
        if self.updates[0]["status"] == "Successful":
            kept |= {key: asked[key] for key in ("nodeRepairConfig",) if key in asked} | {"scalingConfig": sizes}
            most = {"MinSize": sizes["minSize"], "MaxSize": sizes["maxSize"]}
            self.extra[pool] = {**self.extra.get(pool, {}), **most}
            self.world.fleet.desired[pool] = wants
            if not asked.get("warmPoolConfig", {"enabled": True})["enabled"]:
                self.eks_warm.pop(pool, None)
        return {"update": {"id": self.updates[0]["id"], "status": "InProgress"}}

    def _DescribePolicies(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"ScalingPolicies": self.policies.get(self._pool(asked["AutoScalingGroupName"]), [])}

    def _DescribeScheduledActions(self, asked: dict[str, Any]) -> dict[str, Any]:
        names = self.scheduled_actions.get(self._pool(asked["AutoScalingGroupName"]), [])
        return {"ScheduledUpdateGroupActions": [{"ScheduledActionName": name} for name in names]}

    def _DescribeInstanceRefreshes(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = self.refreshes.get(self._pool(asked["AutoScalingGroupName"]), [])
        return {"InstanceRefreshes": [{"InstanceRefreshId": f"r-{n}", "Status": one} for n, one in enumerate(found)]}

    def _UpdateAutoScalingGroup(self, asked: dict[str, Any]) -> dict[str, Any]:
        pool = self._pool(asked["AutoScalingGroupName"])
        self.extra[pool] = {**self.extra.get(pool, {}), **asked}
        return {}

    def _SuspendProcesses(self, asked: dict[str, Any]) -> dict[str, Any]:
        pool = self._pool(asked["AutoScalingGroupName"])
        mine = self.extra.setdefault(pool, {})
        still = [
            one for one in mine.get("SuspendedProcesses", []) if one["ProcessName"] not in asked["ScalingProcesses"]
        ]
        mine["SuspendedProcesses"] = still + [{"ProcessName": name} for name in asked["ScalingProcesses"]]
        return {}

    def _ResumeProcesses(self, asked: dict[str, Any]) -> dict[str, Any]:
        mine = self.extra.setdefault(self._pool(asked["AutoScalingGroupName"]), {})
        there = mine.get("SuspendedProcesses", [])
        mine["SuspendedProcesses"] = [one for one in there if one["ProcessName"] not in asked["ScalingProcesses"]]
        return {}

    def _DescribeUpdate(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._node_group(asked["nodegroupName"])
        return {"update": self.updates.pop(0)}

    def _SetInstanceProtection(self, asked: dict[str, Any]) -> dict[str, Any]:
        for instance in asked["InstanceIds"]:
            if instance not in self.world.nodes:
                raise Refused(400, "ValidationError", f"the instance {instance} is not part of the group")
            (self.unprotected.discard if asked["ProtectedFromScaleIn"] else self.unprotected.add)(instance)
        return {}

    def try_again(self, pool: str) -> None:
        """A group goes on trying until it has its size; what fails is another activity."""
        size, group = self.world.fleet.desired[pool], self.group_name(pool)
        if (owed := size - len(self._nodes(pool))) <= 0:
            return
        errors = self._launch(pool, owed)
        said, how = (f"{errors[0]['ErrorCode']}: none left", "Failed") if errors else ("", "Successful")
        self.failed.append(activity(group, said, self.world.clock.now(), how))
        self.world.fleet.desired[pool] = size

    def _TerminateInstanceInAutoScalingGroup(self, asked: dict[str, Any]) -> dict[str, Any]:
        node, less = self.world.nodes.get(asked["InstanceId"]), asked["ShouldDecrementDesiredCapacity"]
        if node is None:
            raise Refused(
                400, "ValidationError", f"Instance Id not found - No managed instance found: {asked['InstanceId']}"
            )
        desired, least = self.world.fleet.desired, self.extra.get(node.pool, {}).get("MinSize", 0)
        if less and desired[node.pool] <= least:
            raise Refused(400, "ValidationError", f"Currently, desiredSize equals minSize ({least}). {_WOULD_VIOLATE}")
        if not less:
            desired[node.pool] += 1  # The world counts down, and AWS does not.
        if self.hooks.get(self.group_name(node.pool)):
            self.world.interrupt(node.id, 3600)
            self.world.fleet.desired[node.pool] -= 1  # At once; the world counts down when the instance ends.
            self.waiting.add(node.id)
        else:
            self.world.terminate(node.id, "released", evict=True)
        if not less and (missing := desired[node.pool] - len(self._nodes(node.pool))) > 0:
            self._launch(node.pool, missing)
        self._fill(node.pool)
        return {
            "Activity": activity(self.group_name(node.pool), "", self.world.clock.now(), "InProgress", "Terminating")
        }

    def _DescribeLifecycleHooks(self, asked: dict[str, Any]) -> dict[str, Any]:
        group = asked["AutoScalingGroupName"]
        ends = {"AutoScalingGroupName": group, "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
        return {"LifecycleHooks": [{"LifecycleHookName": name, **ends} for name in self.hooks.get(group, ())]}

    def _CompleteLifecycleAction(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["LifecycleActionResult"] == "CONTINUE"
        node = self.world.nodes.get(asked["InstanceId"])
        if node is None or node.doomed_s is None:
            raise Refused(
                400, "ValidationError", f"No active Lifecycle Action found with instance ID {asked['InstanceId']}"
            )
        self.world.fleet.desired[node.pool] += node.id in self.waiting
        self.world.terminate(node.id, "released", evict=True)
        return {}

    def _pool(self, group: str) -> str:
        found = next((pool for pool in self.world.fleet.pools if self.group_name(pool) == group), None)
        if found is None:
            raise Refused(400, "ValidationError", "AutoScalingGroup name not found")
        return found


def reservation(id_: str, kind: str, count: int, free: int, **fields: Any) -> dict[str, Any]:
    """A capacity reservation that is active, as it is described."""
    return {
        "CapacityReservationId": id_,
        "InstanceType": kind,
        "AvailabilityZone": ZONE,
        "InstancePlatform": "Linux/UNIX",
        "Tenancy": "default",
        "State": "active",
        "InstanceMatchCriteria": "targeted",
        "ReservationType": "default",
        "EndDateType": "unlimited",
        "TotalInstanceCount": count,
        "AvailableInstanceCount": free,
        **fields,
    }


def activity(group: str, message: str, at: datetime, status: str = "Failed", what: str = "Launching") -> dict[str, Any]:
    """A group's activity, as it is described."""
    return {
        "ActivityId": f"{what}-{at:%H%M%S}",
        "AutoScalingGroupName": group,
        "Description": f"{what} a new EC2 instance. Status Reason: {message}",
        "Cause": "a request",
        "StartTime": at,
        "StatusCode": status,
        "StatusMessage": message or "done",
        "Details": '{"Subnet ID":"subnet-1","Availability Zone":"eu-west-1a"}',
    }


@contextmanager
def serving(aws: Aws) -> Iterator[Mapping[str, str]]:
    """The account over HTTP: the environment that leads to it, with a role's keys."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

        def do_GET(self) -> None:
            self._rest("GET")

        def _rest(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            signer = OTHER if OTHER in headers.get("authorization", "") else KEY
            if not signature_holds(f"http://{headers['host']}{self.path}", body, headers, SECRETS[signer], method):
                return self._say(403, b'{"message": "The security token is invalid"}')
            service = "eks" if self.path.startswith("/clusters/") else "savingsplans"
            action, asked = read_rest(service, method, self.path, body)
            with aws.lock:
                aws.calls.append((action, asked))
                fault = next((f for f in aws.faults if f.method == action), None)
                if fault is not None:
                    aws.faults.remove(fault)
            said, status, code = b"", 200, ""
            if fault is None or fault.when == "after":
                try:
                    said = write_rest(service, action, aws.answer(action, asked))
                except Refused as no:
                    said, status, code = json.dumps({"message": str(no)}).encode(), no.status, no.code
            return self._say(status, said, code=code) if fault is None else self._misbehave(fault, said)

        def do_POST(self) -> None:
            if self.path != "/":
                return self._rest("POST")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            json_body = "x-amz-target" in self.headers
            form = {} if json_body else dict(parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
            headers = {name.lower(): value for name, value in self.headers.items()}
            aws.signers.append(OTHER if OTHER in headers.get("authorization", "") else KEY)
            if not signature_holds(f"http://{headers['host']}/", body, headers, SECRETS[aws.signers[-1]]):
                return self._say(403, error("SignatureDoesNotMatch", f"you signed with {SECRET} {SESSION}"))
            service, action = _called(headers.get("x-amz-target", ""), form)
            asked = read_form(form) if form else read_json(service, action, body)
            with aws.lock:
                aws.calls.append((action, asked))
                fault = next((f for f in aws.faults if f.method in ("", action)), None)
                if fault is not None:
                    aws.faults.remove(fault)
            status, said = 200, b""
            if fault is None or fault.when == "after":
                try:
                    write = write_answer if form else write_json
                    said = write(service, action, aws.answer(action, asked))
                except Refused as no:
                    words = json.dumps({"__type": no.code, "message": str(no)}).encode()
                    status, said = no.status, error(no.code, str(no)) if form else words
            return self._say(status, said) if fault is None else self._misbehave(fault, said)

        def _misbehave(self, fault: Fault, said: bytes) -> None:
            match fault.what:
                case (int() as status, value):
                    self._say(status, value.encode())
                case "hang":
                    sleep(0.4)
                    self.close_connection = True
                case "reset":
                    self.close_connection = True
                    self.connection.close()
                case "cut":
                    self._say(200, said[: len(said) // 2] or b"<Describe", len(said) + 100)
                case "drip":
                    self.send_response(200)
                    self.end_headers()
                    for _ in range(8):
                        self.wfile.write(b" ")
                        sleep(0.05)
                    self.close_connection = True

        def _say(self, status: int, data: bytes, length: int | None = None, code: str = "") -> None:
            self.send_response(status)
            if code:
                self.send_header("x-amzn-ErrorType", code)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(data) if length is None else length))
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = length is not None

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", **KEYS}
    finally:
        server.shutdown()
        server.server_close()


def error(code: str, message: str) -> bytes:
    """An error as Auto Scaling answers it."""
    return (
        f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
        "<RequestId>r-1</RequestId></ErrorResponse>"
    ).encode()

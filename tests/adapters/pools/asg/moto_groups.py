"""Auto Scaling groups of one zone at moto's server, with the port to them and boto3's clients for them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import boto3
from small_cloud import world

from pilotlight.adapters.pools import asg
from pilotlight.ports.clouds import CloudAccount, Pools

REGION, ZONE = "us-east-1", "us-east-1a"


class Here(NamedTuple):
    """Pools with the port to them, their groups by pool, and boto3's clients."""

    pools: Pools
    client: Any
    ec2: Any
    groups: Mapping[str, str]

    @property
    def group(self) -> str:
        """The only one."""
        (group,) = self.groups.values()
        return group

    @property
    def instances(self) -> list[str]:
        """What runs, as EC2 tells."""
        states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
        named = [{"Name": "tag:aws:autoscaling:groupName", "Values": list(self.groups.values())}]
        found = self.ec2.describe_instances(Filters=states + named)["Reservations"]
        return sorted(i["InstanceId"] for r in found for i in r["Instances"])

    @property
    def desired(self) -> int:
        """The size of the only one, as the port tells it."""
        (pool,) = self.pools.describe()
        return pool.desired


@contextmanager
def at_moto(url: str, names: Sequence[str], most: int = 3) -> Iterator[Here]:
    """A node group of a new cluster for each pool, by a launch configuration: moto knows no LaunchInstances."""
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing", "region_name": REGION}
    client, ec2 = (boto3.client(name, endpoint_url=url, **keys) for name in ("autoscaling", "ec2"))
    run = uuid4()
    image = ec2.describe_images(Owners=["amazon"], MaxResults=5)["Images"][0]["ImageId"]
    groups = {name: f"{name}-{run}" for name in names}
    with ExitStack() as after:
        for name, group in groups.items():
            client.create_launch_configuration(LaunchConfigurationName=group, ImageId=image, InstanceType="g5.xlarge")
            tags = {"eks:cluster-name": f"c-{run}", "eks:nodegroup-name": f"ng-{name}"}
            client.create_auto_scaling_group(
                AutoScalingGroupName=group,
                LaunchConfigurationName=group,
                MinSize=0,
                MaxSize=most,
                DesiredCapacity=0,
                AvailabilityZones=[ZONE],
                Tags=[{"Key": key, "Value": value, "PropagateAtLaunch": True} for key, value in tags.items()],
            )
            after.callback(client.delete_auto_scaling_group, AutoScalingGroupName=group, ForceDelete=True)
        environ = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
        account = CloudAccount({name: f"ng-{name}" for name in names}, world().clock, lambda: "", environ)
        pools = asg.open_pools(f"{REGION}/c-{run}", account)
        assert pools is not None
        yield Here(pools, client, ec2, groups)

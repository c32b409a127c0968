"""The table itself: what ``pilotlight state init`` and tests make, as ``infra/terraform/modules/state`` does."""

from collections.abc import Sequence
from typing import Any

from botocore.exceptions import ClientError

from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.errors import BadInput, Forbidden

EXPIRES = "expires"
KEYS = (("room", "HASH"), ("key", "RANGE"))


def create_table(client: Any, table: str) -> None:
    """Make the table, and wait until it is there. ``client`` is boto3's for DynamoDB."""
    client.create_table(
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in KEYS],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in KEYS],
    )
    client.get_waiter("table_exists").wait(TableName=table, WaiterConfig={"Delay": 2})
    _expire(client, table)


def ready(table: str, endpoint: str, dry_run: bool) -> Sequence[str]:
    """Make what is missing, or say it. Raises ``BadInput`` for another's table, ``Forbidden`` without rights."""
    client = DynamoDBState(table, endpoint=endpoint).client
    make, would = ("would make", "would ") if dry_run else ("made", "")
    try:
        there = _described(client, table)
        if there is None:
            if not dry_run:
                create_table(client, table)
            return [f"{make} the table {table}, paid by request", f"{would}let it delete what has expired"]
        keys = tuple((key["AttributeName"], key["KeyType"]) for key in there["KeySchema"])
        if keys != KEYS:
            raise BadInput(f"DynamoDB table {table}: is not Pilotlight's (its keys are {keys}); name another")
        said = [f"the table {table} is there already"]
        status = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"]
        if status in ("DISABLED", "DISABLING"):
            if not dry_run:
                _expire(client, table)
            said.append(f"{would}let it delete what has expired")
        return said
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        raise Forbidden(
            f"DynamoDB table {table}: {code}: {message}; making it takes dynamodb:CreateTable, DescribeTable, "
            "UpdateTimeToLive and DescribeTimeToLive"
        ) from None


def _described(client: Any, table: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = client.describe_table(TableName=table)["Table"]
    except client.exceptions.ResourceNotFoundException:
        return None
    return found


def _expire(client: Any, table: str) -> None:
    client.update_time_to_live(TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRES})

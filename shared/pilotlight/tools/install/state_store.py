"""Stores of a state, made ready by ``pilotlight state init``: a SQLite file, or the table that Terraform makes too."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pilotlight.adapters.state.dynamodb import DynamoDBState
from pilotlight.connections import state_at
from pilotlight.errors import BadInput, Forbidden

EXPIRES = "expires"
KEYS = (("room", "HASH"), ("key", "RANGE"))


def state_ready(address: str, environ: Mapping[str, str], *, dry_run: bool) -> Sequence[str]:
    """Make the place of a state ready, or say what that takes, a line each. Raises what opening it does."""
    kind, _, where = address.partition(":")
    would = "would make" if dry_run else "made"
    if kind == "sqlite" and where:
        if Path(where).exists():
            state_at(address, None, environ).get("fence/init")
            return [f"the file {where} is there already"]
        if not dry_run:
            state_at(address, None, environ).get("fence/init")
        return [f"{would} the file {where}"]
    if kind == "dynamodb" and where:
        endpoint = environ.get("AWS_ENDPOINT_URL_DYNAMODB") or environ.get("AWS_ENDPOINT_URL", "")
        return _table_ready(where, endpoint, dry_run)
    if kind == "firestore":
        state_at(address, None, environ).get("fence/init")
        return [f"the database of {where} answers; its collection is made by the first record"]
    state_at(address, None, environ)
    return [f"{address} needs nothing made"]


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


def _table_ready(table: str, endpoint: str, dry_run: bool) -> Sequence[str]:
    """Make what is missing, or say it. Raises ``BadInput`` for another's table, ``Forbidden`` without rights."""
    from botocore.exceptions import ClientError  # A SQLite file takes no boto3.

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

"""Calls of AWS's interfaces: their addresses, how these are reached, and a call as a form."""

from collections.abc import Mapping
from urllib.parse import urlencode

from pilotlight.errors import BadInput

VERSIONS: Mapping[str, str] = {
    "autoscaling": "2011-01-01",
    "ec2": "2016-11-15",
    "sns": "2010-03-31",
    "sts": "2011-06-15",
}
_NAMES = {
    "athena": "ATHENA",
    "autoscaling": "AUTO_SCALING",
    "ce": "COST_EXPLORER",
    "dynamodb": "DYNAMODB",
    "ec2": "EC2",
    "eks": "EKS",
    "pricing": "PRICING",
    "s3": "S3",
    "savingsplans": "SAVINGSPLANS",
    "secretsmanager": "SECRETS_MANAGER",
    "servicequotas": "SERVICE_QUOTAS",
    "sns": "SNS",
    "sqs": "SQS",
    "sts": "STS",
}


PARTITIONS: Mapping[str, str] = {
    "cn-": "China (aws-cn)",
    "us-gov-": "GovCloud (aws-us-gov)",
    "eusc-": "the European Sovereign Cloud (aws-eusc)",
    "us-iso": "the isolated regions (aws-iso)",
    "eu-iso": "the isolated regions (aws-iso-e)",
}
"""Partitions that are not served: hosts, ARNs and the services of prices are others there."""


def address(service: str, region: str, environ: Mapping[str, str]) -> str:
    """Where a service is, or a stand-in that ``AWS_ENDPOINT_URL`` names, as boto3 reads it. Raises ``BadInput``."""
    if other := next((name for begin, name in PARTITIONS.items() if region.startswith(begin)), ""):
        raise BadInput(f"region {region} is of {other}, which Pilotlight does not serve: use a region of AWS's own")
    named = environ.get(f"AWS_ENDPOINT_URL_{_NAMES[service]}") or environ.get("AWS_ENDPOINT_URL", "")
    if service == "savingsplans":  # One place for all regions.
        return named.rstrip("/") or "https://savingsplans.amazonaws.com"
    host = "api.pricing" if service == "pricing" else service
    return named.rstrip("/") or f"https://{host}.{region}.amazonaws.com"


def form(action: str, service: str, params: Mapping[str, str]) -> bytes:
    """The body of a call."""
    return urlencode({"Action": action, "Version": VERSIONS[service], **params}).encode()

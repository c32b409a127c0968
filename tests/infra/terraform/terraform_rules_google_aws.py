"""What must hold of the bridge from AWS to Google and mocks cannot see, beside the rules of terraform_rules.py."""

import json
from collections.abc import Iterator

from terraform_rules import State, of_type

from pilotlight.codec.events.aws import eventbridge

NOT_OVER_THE_BRIDGE = {
    "Scheduled Event": "Cloud Scheduler ticks",
    "EC2 Instance State-change Notification": "the next tick sees it, and each instance of the account would send it",
    "EC2 Instance-launch Lifecycle Action": "our hook waits for instances that end",
    "EC2 Instance-terminate Lifecycle Action": "the next tick sees what waits for the hook's answer",
    "Object Created": "a bill that Google's functions read lies at Google",
    "Anomaly Detected": "Google's billing tells of what is spent there",
}
"""Kinds of EventBridge that are read and not sent to Google, each with the reason."""


def the_bridge_sends_what_is_read(state: State) -> Iterator[str]:
    """Every kind of event that a rule at AWS sends has a reader and a topic, and every reader an event or a reason."""
    sent = {
        kind
        for made in of_type(state, "aws_cloudwatch_event_rule")
        for kind in json.loads(made.values["event_pattern"])["detail-type"]
    }
    (bridge,) = of_type(state, "aws_lambda_function")
    topics = json.loads(bridge.values["environment"][0]["variables"]["BRIDGE_TOPICS"])
    for kind in sorted(sent ^ set(topics)):
        yield f"{kind} has {'no topic' if kind in sent else 'no rule'}"
    for kind in sorted(sent ^ (set(eventbridge._READERS) - set(NOT_OVER_THE_BRIDGE))):
        yield f"{kind} is {'sent, and nobody reads it' if kind in sent else 'read, and nobody sends it to Google'}"


def the_bridge_publishes_to_topics_that_are_made(state: State) -> Iterator[str]:
    """The addresses that the Lambda is given are those of topics here, where its role may publish."""
    made = {
        f"projects/{one.values['project']}/topics/{one.values['name']}" for one in of_type(state, "google_pubsub_topic")
    }
    rights = [one for one in of_type(state, "google_pubsub_topic_iam_member") if ".bridge[" in one.address]
    may = {f"projects/{one.values['project']}/topics/{one.values['topic']}" for one in rights}
    (bridge,) = of_type(state, "aws_lambda_function")
    for topic in sorted(set(json.loads(bridge.values["environment"][0]["variables"]["BRIDGE_TOPICS"]).values())):
        if topic not in made & may:
            yield f"{topic} {'may not be published to' if topic in made else 'is nowhere'}"


def the_bridge_may_change_its_identity_for_a_token(state: State) -> Iterator[str]:
    """The APIs by which AWS's identity becomes a token of Google's are enabled."""
    enabled = {made.values["service"] for made in of_type(state, "google_project_service")}
    for api in ("iamcredentials.googleapis.com", "sts.googleapis.com"):
        if api not in enabled:
            yield f"{api} is not enabled"


STATE = (
    the_bridge_sends_what_is_read,
    the_bridge_publishes_to_topics_that_are_made,
    the_bridge_may_change_its_identity_for_a_token,
)

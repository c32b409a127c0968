"""Events of AWS: EventBridge, Auto Scaling, budgets, and the envelopes of SQS and SNS around them.

``aws_envelopes`` opens what is wrapped, ``eventbridge`` finds the source of an event, and each other file reads one
source. An event that is not ours to act on is counted as ignored, with its reason. ``events.decoding`` calls it.
"""

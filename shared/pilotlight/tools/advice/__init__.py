"""Advice that a person asks for: run lengths, targets, commitments, preemption, sharing, worked examples.

Each module works one kind of advice out of records, telemetry or a trace, and gives figures with their error; none of
them acts or prints. Commands of ``cli/gpus`` and ``cli/prices`` call them and print what they give;
what the engine itself decides is in ``decide/``.
"""

"""Advice that a person asks for: run lengths, targets, commitments, preemption, sharing, worked examples."""

"""Alerts: who hears what and when, what became of advice, and the proof of an audit chain."""

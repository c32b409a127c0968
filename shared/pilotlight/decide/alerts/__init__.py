"""Alerts: which channel is told of one and when, what became of advice that nobody acted on, and a credential's end.

Nothing here sends or stores: functions say where an alert goes, which of a burst are told as one, and how advice ended.
``flow/alerts`` and ``flow/delivery`` send by them, ``flow/records`` keeps the advice.
"""

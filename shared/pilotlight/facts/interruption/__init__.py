"""Interruptions as values: the kinds of notices, and what was done about each.

An ``Interruption`` is the one record that any worker goes on from, from its notice until all is done. Kinds say which
cloud can send a notice of which capacity, and how long it leaves. ``decide.interruption`` plans by them, and
``flow.interruption`` carries out.
"""

"""Families of the state's keys, each a ``Table``: a prefix, how a record is written, and how long it is kept.

A family stands with those of the same subject. Alerts and interruptions stand alone though they are small: their
functions start without the facts of the others. No record outgrows its limit: what has more rows lies in ``Rows`` or
``Parted`` tables. Flows read and write through these tables only, and nothing here imports a flow.
"""

"""Families of the state's keys, each a ``Table``: a prefix, how a record is written, and how long it is kept.

A family stands with those of the same subject. No record outgrows its limit: what has more rows lies in ``Rows`` or
``Parted`` tables. Flows read and write through these tables only, and nothing here imports a flow.
"""

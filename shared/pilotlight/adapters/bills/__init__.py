"""Adapters of the Bills port: the charges of clouds, read where exports lie.

``focus`` reads files of an export, ``athena`` and ``bigquery`` ask a warehouse, ``civo_charges`` asks Civo. Of several
versions of a day the newest counts (``versions``); nothing is written, and a warehouse's query has a limit of bytes.
The billing flow calls it.
"""

"""Transport of AWS's query, JSON and REST interfaces over our own HTTP: signed here, sent once (ADR 17).

Nothing of boto3 is imported: its import costs more than a function's call. ``credentials`` and ``signing`` are who
asks, ``query``, ``json_calls`` and ``rest`` make a call, ``refusals`` and ``xml_answers`` read what comes back. Each
call has one deadline. The adapters of AWS's pools, state, outbox and queues call it.
"""

"""The cycle of every function that decides: observe, decide, record, act, tell, under the cluster's lease.

What is to be done is written before it is done, and every call is a step that is revoked, or whose outcome is read,
where its worker is lost: a crash between any two lines leaves a record that the next look finishes. ``provision``,
``reconcile`` and ``interruption/`` call ``run_cycle``; a ``preview`` takes no lease and changes nothing.
"""

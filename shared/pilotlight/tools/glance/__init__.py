"""A cluster at a glance: its state, its pools by row, and what needs a person first.

``look_at_cluster`` reads cluster and state once; the others turn what was read into values and never read. The command
``status``, the live page of ``serve`` and the terminal's texts show the same glance.
"""

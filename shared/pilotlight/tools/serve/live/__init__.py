"""The live page: one cluster's look as it is shown, the stream of what is new, and a decision that is opened.

``live_look`` reads, ``live_view`` is what the page is told, ``live_changes`` makes the one of the other.
"""

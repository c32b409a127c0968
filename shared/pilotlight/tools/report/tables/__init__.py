"""Tables for a terminal, and their figures as JSON.

``sheet`` is the table that all are made of; each module gives one subject's rows for people (``render``) and the same
figures for programs. Both say the same, in the same order. Called by commands.
"""

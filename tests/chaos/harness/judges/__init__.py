"""Judges of a run: each works out from the world's log, the outbox and what was shown whether a promise was broken.

They share no reckoning with the package: the books are a stranger's, and dates, caps and periods are counted anew.
"""

"""Lines of text for people: a plan, a first policy, an interruption, a cluster at a glance.

Each module turns one value into sentences that a terminal or a page shows; the words are for people and no program
reads them. Nothing is worked out here that the value does not hold.
"""

"""A period's dollars for its report: by basis, by whose they were, and by one attribute in one table.

``priced_days`` puts a bill's dollars in the meter's place, ``month`` and ``spend_by`` sum what comes of that.
"""

"""Bills as they count: which of their files are current, and which of their lines are one cluster's.

``bill_versions`` leaves out files and days that a newer file tells again, and tells of those that differ.
``bill_scope`` makes the cluster's bill of the lines that are left, in dollars by day. ``adapters/bills`` read for both.
"""

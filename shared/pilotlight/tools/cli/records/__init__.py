"""Commands that read what survives between events: state, audit chain, reports, bills.

They open the state as ``--state`` names it and print it for people or as JSON. ``state`` alone writes: it begins a
table and imports records; all others only read. ``state_families`` knows the family and the format of every key.
"""

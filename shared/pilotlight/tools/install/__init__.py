"""An account on a cluster, made, limited, proved and removed; pools taken over from who kept them, and handed back.

Whatever is changed is written down before (``takeover_records``), so that it can be taken back whole, by a person or
by silence. Steps are worked out first and done after, so a dry run prints what would be done. Commands of
``cli/install`` call it.
"""

"""alert_fanout: every alert to the channels that want it, each once, now or when it is due.

A telling is claimed before it is shown and proven after it, in the state: so a deliverer that dies is followed by
another, and nobody tells what was told. No channel waits for another. ``doorway`` calls ``fan_out`` with an alert and
``flush`` with a tick, which ``reconcile`` sends when something is due.
"""

"""Messages for people and for capacity's readers: a decision in words, Events on its objects, and single alerts.

A fact is told once: what was told is marked in the state after it was sent, so that a crash tells it twice rather than
never. Nothing here decides or acts. The cycle, budgets and billing make the alerts; ``delivery/`` takes them to their
channels.
"""

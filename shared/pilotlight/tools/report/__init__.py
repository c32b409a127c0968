"""Tables, charts and pages for people.

Values of ``decide/``, ``glance`` and ``replay`` become rows, charts and sentences here; nothing is decided or read
from outside. Commands and ``serve`` call it; alerts and answers of functions have their wording in ``flow/``.
"""

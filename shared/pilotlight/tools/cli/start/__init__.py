"""Commands before anything acts: a first policy, a dry run, the check-up, the demo, serve and send.

A person meets them first, so they need no cloud and no rights beyond looking. ``serve`` is the whole deployment on one
port, ``world`` a cluster that is played, ``send`` one event; they call ``tools/serve``, ``tools/demo``, ``tools/lint``.
"""

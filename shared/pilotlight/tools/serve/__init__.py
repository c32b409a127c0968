"""The functions on one local port: HTTP server, workers, schedule, own pages, live page, and a served world.

``serve`` runs the deployed functions themselves, behind ``request_gate`` (``request_access`` says who comes in), with
their ticks (``tick_schedule``) and their topics (``local_topics``); it adds pages for people, which change nothing but
an alert's acknowledgement and, in a world of its own, pods. Called by ``pilotlight serve``, ``pilotlight world`` and
the demo.
"""

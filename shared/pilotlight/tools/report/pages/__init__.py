"""Self-contained HTML pages and their charts.

A page is a Jinja template beside its module, with its style and its charts as SVG inside, so that one file can be sent
to a person and opened without a network. ``svg`` knows shapes, ``axis_ticks`` axes, the chart modules what is drawn.
Every text of others is escaped.
"""

"""Interruption: the owner who answers a notice, its verification, and the drain plan of the node that goes.

A notice is a hint that anybody may send: nothing of it is believed that node or cloud contradict, and what neither
confirms does no harm that a true one would not. A drain plan loses the fewest dollars of work by its deadline.
``flow/interruption`` calls these at a notice and at every look until the node is gone; ``money`` counts by its times.
"""

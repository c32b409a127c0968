"""Interruption: who answers a notice, whether it is true, and the drain plan of the node that goes."""

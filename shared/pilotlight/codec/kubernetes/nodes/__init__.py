"""Nodes to facts: room that is free on each, its GPU model and devices, and evidence of other autoscalers.

``nodes`` makes the fact of a node with its pods; ``gpu_models`` reads clouds' labels in one vocabulary, ``devices``
drivers' slices (DRA), imported only where one is published. In doubt a node has less room, and is never given back.
``view`` calls it.
"""

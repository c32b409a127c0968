"""Pilotlight: pay for GPUs on Kubernetes only while they work.

Two wings: ``tools/`` is what people run, the rest is the engine that functions run, and nothing in the engine imports
tools. Files at this level stand below all rooms (``units``, ``errors``) or above them (``settings``, ``connections``,
``wiring``, ``on_lambda``): a subject has a folder, and nothing of one stands here.
"""

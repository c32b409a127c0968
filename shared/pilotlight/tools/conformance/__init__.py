"""Conformance of a cloud: its promises, tried on the cloud itself with one node.

``sandbox`` knows the pool, its size before and the instances bought since, and gives them back; ``conformance_run``
has the steps, each a promise that is kept or not. Whatever is bought is given back, however a step ends. Called by
``pilotlight conformance``.
"""

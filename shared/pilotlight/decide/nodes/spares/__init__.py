"""Spares: idle nodes and stopped ones that a pool keeps, by how often they are asked for and what a wait is worth.

The k-th spare stays while the hits that it takes are worth more than its price, both counted only while it is there; a
stopped node likewise, by its disk. Rates are learnt from the pool's own past (``demand_rates``), without a
price in them. Steps of the plan buy spares by these; ``flow/observe`` and ``flow/cycle`` count demand.
"""

"""Offers: what the pools can buy, at what price, how long spot of it lives, and which offering a pod gets.

An offering is one type of one pool in one zone, with the resources that its node will have: what was seen of nodes that
joined is believed before the catalogue. Without a known price nothing is bought. ``selection`` ranks by cost of useful
work; filters only narrow. The wiring makes ``offerings`` of policy and catalogue, steps of the plan amend them for one
plan, ``place`` chooses among them.
"""

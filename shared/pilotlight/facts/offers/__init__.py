"""Offers as values: catalogue, prices, quota, reserved capacity, spot's history by zone.

Prices carry their source and date, and a price that nobody has read is no price. Adapters of clouds and the catalogue's
codec fill these in; ``decide.offers`` makes the pools' offerings of them.
"""

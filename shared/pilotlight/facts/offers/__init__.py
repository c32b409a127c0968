"""Offers as values: catalogue, prices, quota, reserved capacity, spot's history by zone."""

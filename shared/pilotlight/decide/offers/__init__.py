"""Offers: what the pools can buy, at what price, how long spot of it lives, and which offering a pod gets."""

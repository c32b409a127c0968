"""Adapters of the Pools port over clouds: Auto Scaling groups and EKS (``asg/``), Civo, and the served world.

A pool grows to a size or gives one node back by its id, each by one request behind a gate; a change that was perhaps
made is an ``Unsure``, and never sent again by itself. Clouds do not know each other. ``advisor`` stands in where there
is advice alone, and changes nothing. The cycle, interruptions and reclaims call it.
"""

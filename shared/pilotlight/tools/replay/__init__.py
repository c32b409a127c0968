"""Recorded traces through the front door: the time machine, its peers and its bounds."""

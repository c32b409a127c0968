"""Alerts as values: deliveries, advice, audit lines, and our own figures."""

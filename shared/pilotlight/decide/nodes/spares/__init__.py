"""Spares: idle nodes and stopped ones that a pool keeps, by how often they are asked for and what a wait is worth."""

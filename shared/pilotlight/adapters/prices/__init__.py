"""Where instance types and their dated prices are read."""

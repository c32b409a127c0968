"""The Prices port: instance types with dated prices."""

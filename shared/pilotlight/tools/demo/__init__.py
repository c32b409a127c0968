"""The demo: what it plays on, its story, and a watch over the world."""

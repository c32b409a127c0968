"""What to buy, keep and give back: demand, offerings, bins and one objective."""

"""Commands that reckon dollars: prices, sizes, spot, deadlines, commitments, what Pilotlight itself costs."""

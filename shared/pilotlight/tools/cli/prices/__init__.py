"""Commands that reckon dollars: prices, sizes, spot, deadlines, commitments, what Pilotlight itself costs.

They work from a policy, its catalogue and the state's records, and print sums that a reader can work out again.
``prices`` asks a cloud for its prices and writes them into the person's own catalogue.
"""

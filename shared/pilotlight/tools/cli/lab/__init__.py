"""Commands that replay and try: traces, peers, the price of waiting, conformance of a cloud, interruptions."""

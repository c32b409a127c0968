"""Commands that replay and try: traces, peers, the price of waiting, conformance of a cloud.

Replays run in a world of their own and touch nothing outside; conformance alone spends money, at most as many dollars
as it is given. They call ``tools/replay`` and ``tools/conformance`` and write pages and logs where they are told to.
"""

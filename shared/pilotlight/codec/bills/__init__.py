"""Bills of clouds -> days of dollars.

``charges`` reads Civo's hours, ``rates`` the price file by which an hour is dollars. A charge that cannot be counted
becomes a finding with its reason, and never $0: the day is doubtful then. The adapters of the Bills port call it.
"""

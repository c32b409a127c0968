"""Other ways to run a GPU cluster, to compare with: they share the world and none of Pilotlight's decisions.

Each peer is a rule after its own documentation, woken by ``peer_run`` at its own pace; ``names`` reads them from a
command line. A peer imports the world and ``base``, and nothing that decides for Pilotlight.
"""

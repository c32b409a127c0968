"""Other ways to run a GPU cluster, to compare with: they share the world and none of Pilotlight's decisions."""

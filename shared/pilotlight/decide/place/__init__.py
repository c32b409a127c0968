"""Place: pods and gangs given room, nodes chosen for those without, and nodes closed to work that belongs elsewhere."""

"""Agents of a node: its metadata server relayed as notices, its GPUs as figures.

They run on GPU nodes, as a DaemonSet does: they read the machine they stand on (metadata server, NVML, kubelet's
socket) and post or serve what they read. A source that does not answer is left out,
never guessed. Begun by ``pilotlight notice-agent`` and ``pilotlight monitor``.
"""

"""Tools: all that people run. They import the engine that functions run; nothing in the engine imports them.

Commands stand in ``cli``, a file each; what a command needs beyond printing stands in the folder of its subject beside
it (``checkup``, ``install``, ``replay`` ...), and is called by commands, by ``serve`` and by each other. Bundles of
functions leave this folder out whole, so a library that only people need (typer, rich, requests) is imported here.
"""

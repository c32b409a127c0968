"""The command ``pilotlight``: its entry, its commands in folders by what they are for, and what they share.

A command's module is named ``..._command`` and registers itself; it is imported only when it runs or its help is
shown. It reads options, calls the room of its subject, and prints; it decides nothing. Shared by all: Ctrl-C, state
option, terminal, printing, files as clusters, and calls through a person's proxy.
"""

"""The demo: its stage, its story, and a watch over the world.

``demo_stage`` begins a served world, ``serve`` with its workers and a web hook, all on this machine; ``demo_story``
lets an hour happen on it by real events; ``world_watch`` looks for rules that were broken meanwhile. Nothing outside is
touched, and all ends with the command ``pilotlight demo``.
"""

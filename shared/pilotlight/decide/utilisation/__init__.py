"""Utilisation: GPUs that are held and not used: idle pods, replicas that would do, and devices that could be shared.

Only what was measured counts: a pod with a gap in its samples is unknown, never idle, and past silence is judged by how
often activity followed it. Kinds of waste add up, so that no dollar is advised twice. ``flow/reclaim`` puts owners to
rest by ``idle_owners``; advice and tables that people ask for (``tools``, ``flow/billing``) read the rest.
"""

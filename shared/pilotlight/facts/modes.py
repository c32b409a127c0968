"""Modes: how much is done by itself, of a deployment and of a pool."""

from typing import Literal

Mode = Literal["observe", "advise", "scale-up", "act"]
PoolMode = Literal["observe", "advise", "scale-up", "act", "canary"]
"""What a pool's own may be: a ``canary`` acts for as long as it keeps within its bounds."""

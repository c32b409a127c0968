"""Commands that change what Pilotlight does now: brakes, one look by hand, idle owners, a drill."""

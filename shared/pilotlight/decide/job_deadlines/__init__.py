"""Job deadlines: what is bought, kept or moved so that a job ends in time at the least cost."""

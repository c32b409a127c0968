"""Commands before anything acts: a first policy, a dry run, the check-up, the demo, serve and send."""

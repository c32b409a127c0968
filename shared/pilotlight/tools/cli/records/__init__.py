"""Commands that read what survives between events: state, audit chain, reports, bills."""

"""The functions on one local port: HTTP server, workers, schedule, own pages, live page, and a served world."""

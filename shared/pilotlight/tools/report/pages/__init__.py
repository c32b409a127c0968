"""Self-contained HTML pages and their charts."""

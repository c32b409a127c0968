"""The Channel port: where people read alerts."""

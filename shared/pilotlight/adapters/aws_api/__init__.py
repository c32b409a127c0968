"""AWS's query and JSON interfaces over our own HTTP: signed here, sent once, and nothing of boto3 imported (ADR 17)."""

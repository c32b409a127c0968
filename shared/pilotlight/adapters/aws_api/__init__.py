"""AWS's query interfaces over our own HTTP: signed here, sent once, and nothing of boto3 imported (ADR 17)."""

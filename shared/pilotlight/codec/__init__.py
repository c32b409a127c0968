"""Codecs: outside shapes to messages and facts, and facts to outside shapes.

Here are events, Kubernetes objects, bills, policies, catalogs, records of the state, alerts' texts, and a served
world's wire. A codec reads bytes and never calls anybody: adapters fetch, codecs parse. Whatever is wrong becomes an
error or a finding that names the path; nothing that a stranger wrote can end a plan. Flow, the doorway and adapters
call it.
"""

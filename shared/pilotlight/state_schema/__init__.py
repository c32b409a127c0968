"""The state's families of keys: each is a ``Table``, and ``registry`` knows them all. Nothing here imports a flow."""

"""What answers before a command is imported: the help of the command itself, and completion.

Both are written from tables, the command table and ``completion.json``, so that they take little longer than Python
itself.
"""

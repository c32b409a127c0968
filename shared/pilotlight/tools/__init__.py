"""Tools: all that people run. They import the engine that functions run; nothing in the engine imports them."""

"""One look at a cluster, its cloud and the state, at one moment; and what the look settles before it is decided on.

A look is a frozen ``Snapshot``; each function here returns another one with more in it. What is written is what was
seen, never what is to be done. The cycle calls ``look`` and ``settle``; billing and interruption read single facts.
"""

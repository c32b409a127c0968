"""What is given back to Karpenter.

``nodepool_handback`` has limits of its NodePools, ``claims_handback`` machines that we asked it for by claims.
"""

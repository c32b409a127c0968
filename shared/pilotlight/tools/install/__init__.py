"""An account on a cluster, made, limited, proved and removed; pools taken over from who kept them, and handed back."""

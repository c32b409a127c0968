"""What lies in the state between looks: the lease, decisions and their steps, marks, brakes."""

"""What clouds bill -> days of dollars. What cannot be counted becomes a finding with its reason, and never $0."""

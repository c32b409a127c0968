"""Commands that look and change nothing: status, pools, why, budgets, alerts, queues, advice beside what was done."""

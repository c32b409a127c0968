"""Events of AWS: EventBridge, Auto Scaling, budgets, and what SQS and SNS wrap around them."""

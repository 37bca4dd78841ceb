"""What makes steps durable: one file for each engine."""

"""Running an audit: its settings, its plan, and `Audit`, the outcome."""

"""How an audit runs: its settings, its plan, and `Audit`, what comes of it."""

"""Running an audit: its settings, its plan and the resulting `Audit`."""

"""From settings to files: running an `audit.toml`, the report in every format, and work with saved audits."""

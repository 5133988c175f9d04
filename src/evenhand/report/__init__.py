"""The report: its page, its front page, and all formats."""

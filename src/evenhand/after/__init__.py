"""What is computed from finished audits: periods, other shares of groups, legal profiles, small counts."""

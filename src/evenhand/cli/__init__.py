"""The command line: one file per command; each only reads its arguments and shows results."""

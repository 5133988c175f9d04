"""The command line: one file for each large command; each only reads its arguments and shows results."""

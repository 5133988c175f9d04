"""The command line: a file for each large command; each reads its arguments and shows results."""

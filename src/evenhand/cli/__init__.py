"""The command line: each large command has a file that reads its arguments and prints its results."""

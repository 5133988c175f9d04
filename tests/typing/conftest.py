"""The files of calls are read by a type checker, not run."""

collect_ignore = ["right_calls.py", "wrong_calls.py"]

"""Tools for finished audits: verify, pack and compare them, and plan sample sizes."""

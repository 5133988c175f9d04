"""Tools for finished audits (verify, pack, compare), and planning of sample sizes."""

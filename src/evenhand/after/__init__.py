"""Computations on finished audits: periods, population shift, legal profiles, small counts."""

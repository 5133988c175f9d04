"""Computations on finished audits: gaps over time, population shift, legal profiles, and small counts."""

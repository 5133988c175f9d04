"""Migrations of the database, run by Alembic from inside the package."""

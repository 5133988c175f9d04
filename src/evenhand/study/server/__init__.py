"""The study server: participant pages, and a dashboard for researchers."""

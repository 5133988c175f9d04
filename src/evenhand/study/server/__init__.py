"""The study server: pages for people who take part, and a dashboard for the researcher."""

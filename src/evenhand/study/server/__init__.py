"""The study server: pages for people who take part, and a desk for the researcher."""

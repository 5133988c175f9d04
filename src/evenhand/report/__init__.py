"""Reports: the page, the front page, and all formats."""

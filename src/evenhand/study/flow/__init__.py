"""The flow of a study: its steps, their pages and their forms, without web server or database."""

"""What a person goes through in a study: steps, what each shows, and what its form may hold. No web, no database."""

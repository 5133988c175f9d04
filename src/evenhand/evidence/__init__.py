"""Work with finished audits: verify and pack them, compare two, plan how many people are needed."""

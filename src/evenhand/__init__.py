"""evenhand audits decision systems for fairness, with statistics you can defend."""

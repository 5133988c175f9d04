"""What an engine elsewhere sends to this process for a parity audit."""

from evenhand.table.engines import MOST_ROWS, TransferLimit

TRANSFER = TransferLimit(
    "cells: combinations of groups, outcome, decision and score bin; for AUC the scores, once a model",
    MOST_ROWS,
    "AUC from 16,384 bins of the score, with its error",
)
"""At most."""

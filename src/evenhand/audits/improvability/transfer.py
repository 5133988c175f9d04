"""What an engine elsewhere sends to this process for an improvability audit."""

from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

TRANSFER = TransferLimit(
    "the features, the outcome and the decisions, once",
    MOST_ROWS,
    REFUSED,
)
"""At most."""

"""What an engine elsewhere sends to this process for a reliability audit."""

from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

TRANSFER = TransferLimit(
    "the features and the outcome, once",
    MOST_ROWS,
    REFUSED,
)
"""At most."""

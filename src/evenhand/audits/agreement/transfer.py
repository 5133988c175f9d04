"""What an engine elsewhere sends to this process for an agreement audit."""

from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

TRANSFER = TransferLimit(
    "the ratings, once",
    MOST_ROWS,
    REFUSED,
)
"""At most."""

"""What an engine elsewhere sends to this process for a disagreement audit."""

from evenhand.table.engines import MOST_ROWS, REFUSED, TransferLimit

TRANSFER = TransferLimit(
    "the answers, once",
    MOST_ROWS,
    REFUSED,
)
"""At most."""

"""What an engine elsewhere sends to this process for an effort audit."""

from evenhand.table.engines import MOST_ROWS, TransferLimit

TRANSFER = TransferLimit(
    "people with their trajectory, once",
    MOST_ROWS,
    "everything in the engine: bins, a grid of 65³ cells and a sample of about 200,000 people, with the error",
)
"""At most."""

"""`python -m evenhand`, and the `evenhand` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; stopping it while it still loads is no error either."""
    try:
        from evenhand.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

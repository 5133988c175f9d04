"""Audit a synthetic credit model and save the report: `python examples/parity_quickstart.py [folder]`.

evenhand generates the households, so the script needs no data and no network.
"""

from __future__ import annotations

import sys

import evenhand as eh


def main(folder: str = "out") -> None:
    """Make the data, audit it, and write report.html, results.json and run.json into a folder."""
    households = eh.datasets.make_households(5_000, seed=1)
    table = eh.Table(
        households,
        id="household",
        outcome="missed_payment",
        groups=["race", "sex"],
        predictions={"xgboost": "risk_xgboost", "logistic": "risk_logistic"},
        favourable="not_selected",
    )
    audit = eh.audit(
        table,
        parity={"metrics": ["selection_rate", "tpr", "fpr"]},
        thresholds=[{"metric": "equal_opportunity_difference", "grouping": "sex", "max": 0.1}],
        report={"title": "Two credit models on invented households"},
    )
    files = audit.save(folder)
    sys.stdout.write(f"{audit.summary()}\n\nReport: {files['report.html']}\n")


if __name__ == "__main__":
    main(*sys.argv[1:2])

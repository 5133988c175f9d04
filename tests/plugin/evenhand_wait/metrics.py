"""The metrics of the waiting audit."""

from evenhand.core.metrics import Metric, gap_limits

METRICS = {
    "mean_wait": Metric(
        name="mean_wait",
        title="Mean waiting time",
        unit="amount",
        better="lower",
        formula="sum of the days / people",
        caveat="It says nothing of how urgent the cases were.",
        headline=True,
        reveals="number",  # a mean is no count
        limits=gap_limits(most=float("inf")),
    )
}

"""Standard errors of values from clustered rows, such as several rows per person, household, judge or prompt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.stats.types import FloatArray, IntArray

FEWEST = 10
"""The fewest clusters from which the error of a value can be told."""


@dataclass(frozen=True, kw_only=True)
class ClusterErrors:
    """Variances, design effects and related statistics of several values from clustered rows.

    Parameters
    ----------
    variance : the variance of each value; nan with fewer than 10 clusters.
    design : the design effect, from one common correlation within clusters; 1 where unknown.
    dof : the degrees of freedom of each variance.
    correlation : the correlation of each value with every other value.
    skewness : the skewness of each value.
    clusters : the number of clusters with people of each value.
    """

    variance: FloatArray
    design: FloatArray
    dof: FloatArray
    correlation: FloatArray
    skewness: FloatArray
    clusters: IntArray

    def at_least(self, independent: FloatArray) -> FloatArray:
        """Return the variances, at least those of independent people times the design effect; nan if unknown.

        This avoids too small a variance for a group whose clusters happen to be alike.
        """
        return np.where(np.isnan(self.variance), np.nan, np.fmax(self.variance, independent * self.design))


def cluster_errors(influence: FloatArray, people: FloatArray, independent: FloatArray) -> ClusterErrors:
    r"""Return variances of values from delete-one-cluster influences, with degrees of freedom and correlations.

    The variance is the sum of squared influences, which for a mean of people is CR2: with the deviations d_i of a
    cluster's n_i people added up, sum (d_i / N)² / (1 - n_i / N). It is unbiased if people are independent. The degrees
    of freedom are Satterthwaite's for clusters of these sizes at a correlation r of people within a cluster,
    (sum e_i)² / sum e_i² - 1 with e_i = (n_i (1 - r) + r n_i²) / N². r is estimated from the variances of all values
    together (similar to Imbens and Kolesár 2016), and 1 if the variances of independent people are unknown. `design` is
    1 + r (sum n_i² / N - 1), Kish's design effect.

    Parameters
    ----------
    influence
        (clusters, values) The value minus the value without the cluster, times sqrt(1 - n_i / N).
    people
        (clusters, values) The number of people of each value.
    independent
        The variance of each value if all people were independent; nan where unknown.

    References
    ----------
    R. M. Bell and D. F. McCaffrey (2002), Bias reduction in standard errors for linear regression with multi-stage
    samples, Survey Methodology 28. J. E. Pustejovsky and E. Tipton (2018), Small-sample methods for cluster-robust
    variance estimation, Journal of Business and Economic Statistics 36. G. W. Imbens and M. Kolesár (2016), Robust
    standard errors in small samples, Review of Economics and Statistics 98. L. Kish (1965), Survey Sampling.

    Examples
    --------
    >>> people = np.full((20, 1), 5.0)
    >>> yes = np.array([[5.0], [0.0]] * 10)  # all of a cluster answer alike
    >>> share = people / people.sum()
    >>> influence = (yes - 0.5 * people) / people.sum() / np.sqrt(1 - share)
    >>> found = cluster_errors(influence, people, np.array([0.25 / 100]))
    >>> round(float(found.variance[0] / 0.0025), 2), round(float(found.design[0]), 2), round(float(found.dof[0]), 2)
    (5.26, 5.0, 19.0)
    """
    total, clusters = people.sum(axis=0), (people > 0).sum(axis=0)
    with np.errstate(all="ignore"):
        covariance = influence.T @ influence
        variance = np.diag(covariance)
        size = (people**2).sum(axis=0) / total
        known = _correlation_within(variance, independent, size)
        shared = 1.0 if known is None else known
        each = (people * (1.0 - shared) + shared * people**2) / total**2
        dof = each.sum(axis=0) ** 2 / (each**2).sum(axis=0) - 1.0
        spread = np.sqrt(variance)
        correlation = covariance / np.multiply.outer(spread, spread)
        skewness = (influence**3).sum(axis=0) / spread**3
    return ClusterErrors(
        variance=np.where(clusters < FEWEST, np.nan, variance),
        design=1.0 + (known or 0.0) * (size - 1.0),
        dof=np.maximum(dof, 1.0),
        correlation=np.clip(np.nan_to_num(correlation), -1.0, 1.0),
        skewness=np.nan_to_num(skewness),
        clusters=clusters.astype(np.int64),
    )


def variances_of_means(
    cluster: IntArray, cell: IntArray, weight: FloatArray, total: FloatArray, mean: FloatArray
) -> tuple[FloatArray, IntArray]:
    """Return the CR2 variances of the means of many cells, and the number of clusters of each cell.

    Parameters
    ----------
    cluster, cell : the cluster and the cell of each entry.
    weight, total : the weight and the weighted sum of each entry.
    mean : the mean of each cell.
    """
    pairs, place = np.unique(np.stack([cell, cluster]), axis=1, return_inverse=True)
    of, cells = pairs[0], len(mean)
    people, sums = (np.bincount(place.ravel(), weights=each) for each in (weight, total))
    with np.errstate(all="ignore"):
        share = people / np.bincount(of, weights=people, minlength=cells)[of]
        influence = np.where(share < 1.0, (sums / people - mean[of]) * share / np.sqrt(1.0 - share), 0.0)
    variance = np.bincount(of, weights=influence**2, minlength=cells).astype(np.float64)
    return variance, np.bincount(of, minlength=cells).astype(np.int64)


def _correlation_within(variance: FloatArray, independent: FloatArray, size: FloatArray) -> float | None:
    """Return the correlation within clusters implied by all variances together, from 0 to 1; None if unknown."""
    known = np.isfinite(variance) & np.isfinite(independent) & (size > 1.0)
    expected = float((independent * (size - 1.0))[known].sum())
    if expected <= 0.0:
        return None
    return float(np.clip((variance - independent)[known].sum() / expected, 0.0, 1.0))

"""The noise of a published study by name: 'raez-2024/all/5' as its code ran, 'raez-2024-text/all/5' as it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.errors import ConfigError, did_you_mean
from evenhand.stats.noise.experiment import NoiseItem, Shares
from evenhand.stats.noise.models import Flip, Normal

READINGS = ("raez-2024", "raez-2024-text")
FEATURE_SETS = ("all", "numeric", "categorical", "minima")
SIZES = (1, 5, 10)


@dataclass(frozen=True)
class PublishedNoise:
    """One setting of Räz (2024).

    The paper calls the size of numeric errors their variance; the code that made its figures used it as their standard
    deviation, and touched each entry with chance p where the text reads as an exact share.

    Attributes
    ----------
    sd
        Standard deviation of numeric errors; None where numbers are left alone.
    flips
        Whether binary features are flipped.
    minima
        Whether numbers below a column's minimum are set to it.
    shares
        How a level is turned into touched entries.

    References
    ----------
    T. Räz (2024), Reliability gaps between groups in COMPAS dataset, FAccT '24.

    Examples
    --------
    >>> published_noise("raez-2024/all/5").sd, round(published_noise("raez-2024-text/all/5").sd, 4)
    (5.0, 2.2361)
    """

    sd: float | None
    flips: bool
    minima: bool
    shares: Shares

    def items(
        self, numeric: Sequence[int], binary: Sequence[int], minima: Mapping[int, float] | None = None
    ) -> tuple[NoiseItem, ...]:
        """Return the noise of a table's columns.

        Parameters
        ----------
        numeric, binary
            The columns that may go wrong.
        minima
            The least value of a numeric column, used where the setting has minima.

        Examples
        --------
        >>> [item.columns for item in published_noise("raez-2024/all/1").items([3, 4], [0])]
        [(3,), (4,), (0,)]
        """
        least = (minima or {}) if self.minima else {}
        numbers = (
            []
            if self.sd is None
            else [NoiseItem((column,), Normal(self.sd, minimum=least.get(column))) for column in numeric]
        )
        return tuple(numbers + [NoiseItem((column,), Flip()) for column in binary if self.flips])


def published_names() -> list[str]:
    """Return the names of all settings.

    Examples
    --------
    >>> len(published_names()), published_names()[0]
    (20, 'raez-2024/all/1')
    """
    return [
        name
        for reading in READINGS
        for features in FEATURE_SETS
        for name in (
            [f"{reading}/{features}"]
            if features == "categorical"
            else [f"{reading}/{features}/{size}" for size in SIZES]
        )
    ]


def published_noise(name: str) -> PublishedNoise:
    """Return a published setting by its name `reading/features/size`; 'categorical' has no size.

    Examples
    --------
    >>> published_noise("raez-2024/al/5")
    Traceback (most recent call last):
    evenhand.errors.ConfigError: There is no noise setting 'raez-2024/al/5'; did you mean 'raez-2024/all/5'?
    """
    if name not in published_names():
        near = did_you_mean(name, published_names()).split(" or ")[0].rstrip("?")
        raise ConfigError(f"There is no noise setting {name!r}; {near}?")
    reading, features, *size = name.split("/")
    text = reading.endswith("-text")
    sd = None if not size else float(size[0]) ** (0.5 if text else 1.0)
    return PublishedNoise(sd, features != "numeric", features == "minima", "exact" if text else "bernoulli")

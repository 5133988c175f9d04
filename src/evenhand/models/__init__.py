"""Models fitted by evenhand with out-of-fold scores, for data without scores."""

from evenhand.models.estimators import ModelsSettings, fitted
from evenhand.models.folds import cross_predict

__all__ = ["ModelsSettings", "cross_predict", "fitted"]


def __dir__() -> list[str]:
    return __all__

"""Models fitted here: estimators by name, and scores out of fold, for audits of data that has no scores yet."""

from evenhand.models.estimators import ModelsSettings, fitted
from evenhand.models.folds import cross_predict

__all__ = ["ModelsSettings", "cross_predict", "fitted"]


def __dir__() -> list[str]:
    return __all__

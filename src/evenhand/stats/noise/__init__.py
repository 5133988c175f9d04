"""Mistakes in people's features, and their effects on a model's scores and decisions.

Models of mistakes (`Flip`, `Normal`, `Confusion`, `OneHot`, a learned `Pilot`), the `Experiment` that applies them to
the features, and the engine that predicts each distinct row once (`simulate`, `paths`, `attribute`).
"""

from evenhand.stats.noise.attribution import Attribution, attribute, shapley
from evenhand.stats.noise.engine import (
    Changes,
    Paths,
    Simulation,
    base_people,
    paths,
    replicate_changes,
    simulate,
)
from evenhand.stats.noise.experiment import Experiment, NoiseItem, Shares, replicate_seeds
from evenhand.stats.noise.models import Confusion, Flip, NoiseModel, Normal, OneHot, Right, between, neighbours
from evenhand.stats.noise.predictors import (
    FixedFunction,
    FixedProduct,
    Linear,
    Predictions,
    Predictor,
    RowFunction,
    fixed_functions,
    fixed_products,
    products,
    thresholded,
    with_derived,
)
from evenhand.stats.noise.sources import (
    ErrorVectors,
    HotDeck,
    Pilot,
    largest_level,
    learned_confusion,
    published_names,
    published_noise,
)
from evenhand.stats.noise.states import OF_THE_FIRST, SUMS, PairSums

__all__ = [
    "OF_THE_FIRST",
    "SUMS",
    "Attribution",
    "Changes",
    "Confusion",
    "ErrorVectors",
    "Experiment",
    "FixedFunction",
    "FixedProduct",
    "Flip",
    "HotDeck",
    "Linear",
    "NoiseItem",
    "NoiseModel",
    "Normal",
    "OneHot",
    "PairSums",
    "Paths",
    "Pilot",
    "Predictions",
    "Predictor",
    "Right",
    "RowFunction",
    "Shares",
    "Simulation",
    "attribute",
    "base_people",
    "between",
    "fixed_functions",
    "fixed_products",
    "largest_level",
    "learned_confusion",
    "neighbours",
    "paths",
    "products",
    "published_names",
    "published_noise",
    "replicate_changes",
    "replicate_seeds",
    "shapley",
    "simulate",
    "thresholded",
    "with_derived",
]

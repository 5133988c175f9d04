"""Mistakes in the features of people, and what they do to a model's scores and decisions.

Models of mistakes (`Flip`, `Normal`, `Confusion`, `OneHot`, a learned `Pilot`), the `Experiment` that puts them into
the features, and the engine that predicts each distinct row once (`simulate`, `paths`, `attribute`).
"""

from evenhand.stats.noise.attribution import Attribution, attribute, shapley
from evenhand.stats.noise.engine import Paths, Simulation, paths, simulate
from evenhand.stats.noise.experiment import Experiment, NoiseItem, replicate_seeds
from evenhand.stats.noise.linked import FixedFunction, FixedProduct, fixed_functions, fixed_products
from evenhand.stats.noise.models import Confusion, Flip, NoiseModel, Normal, OneHot, Right, neighbours
from evenhand.stats.noise.predictors import (
    Linear,
    Predictions,
    Predictor,
    once_per_distinct_row,
    products,
    thresholded,
    with_derived,
)
from evenhand.stats.noise.profile import ErrorVectors, HotDeck, Pilot, largest_level, learned_confusion
from evenhand.stats.noise.published import PublishedNoise, published_names, published_noise
from evenhand.stats.noise.sums import PairSums

__all__ = [
    "Attribution",
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
    "PublishedNoise",
    "Right",
    "Simulation",
    "attribute",
    "fixed_functions",
    "fixed_products",
    "largest_level",
    "learned_confusion",
    "neighbours",
    "once_per_distinct_row",
    "paths",
    "products",
    "published_names",
    "published_noise",
    "replicate_seeds",
    "shapley",
    "simulate",
    "thresholded",
    "with_derived",
]

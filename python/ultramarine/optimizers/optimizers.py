"""All optimizers, under one name."""

from ultramarine.optimizers.adafactor import Adafactor
from ultramarine.optimizers.adagrad import AdaDelta, Adagrad, RMSprop
from ultramarine.optimizers.adam import Adam, Adamax, AdamW
from ultramarine.optimizers.base import Optimizer
from ultramarine.optimizers.clipping import clip_grad_norm
from ultramarine.optimizers.lion import Lion
from ultramarine.optimizers.multi import MultiOptimizer
from ultramarine.optimizers.muon import Muon
from ultramarine.optimizers.sgd import SGD

__all__ = [
    "SGD",
    "AdaDelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "MultiOptimizer",
    "Muon",
    "Optimizer",
    "RMSprop",
    "clip_grad_norm",
]

"""Random numbers. Without a key they come from a state of the thread's own; see `seed`."""

from ultramarine import _core

__all__ = [
    "bernoulli",
    "bits",
    "categorical",
    "gumbel",
    "key",
    "laplace",
    "multivariate_normal",
    "normal",
    "permutation",
    "randint",
    "seed",
    "split",
    "state",
    "truncated_normal",
    "uniform",
]

bernoulli = _core._random.bernoulli
bits = _core._random.bits
categorical = _core._random.categorical
gumbel = _core._random.gumbel
key = _core._random.key
laplace = _core._random.laplace
multivariate_normal = _core._random.multivariate_normal
normal = _core._random.normal
permutation = _core._random.permutation
randint = _core._random.randint
seed = _core._random.seed
split = _core._random.split
truncated_normal = _core._random.truncated_normal
uniform = _core._random.uniform

state = _core._random.state
"""The calling thread's state: `state[0]` is its key, which may be read and set."""

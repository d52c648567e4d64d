"""Cases that run in both libraries, for functions whose calls are counted or that take other functions."""

from typing import Any

import mlx.core as mlx

import ultramarine as um

BOTH = [um, mlx]


def values(x: Any) -> Any:
    """A tree with lists for arrays."""
    if isinstance(x, (list, tuple)):
        return [values(i) for i in x]
    if isinstance(x, dict):
        return {k: values(v) for k, v in x.items()}
    return x.tolist() if hasattr(x, "tolist") else x


def same(case: Any) -> Any:
    """The outcome of a case, which is the same in both libraries: values, or the type of the error."""
    outcomes = []
    for mx in BOTH:
        try:
            outcomes.append(values(case(mx)))
        except Exception as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]
    return outcomes[0]

"""SciPy and scikit-learn on Ultramarine's arrays, by way of the Python array API standard.

Neither knows Ultramarine: they ask an array for its namespace (`x.__array_namespace__()`) and call the
standard's functions. Run it where scipy and scikit-learn are installed. Each line is a call of theirs:
that its result is an array of ours, and how far it is from the same call on NumPy arrays.
"""

from __future__ import annotations

import os

# SciPy reads it when it is imported.
os.environ["SCIPY_ARRAY_API"] = "1"

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

import ultramarine as mx

# The libraries have no types.
special, stats, signal, fft, integrate, constants, differentiate, vq = (
    import_module(f"scipy.{name}")
    for name in [
        "special",
        "stats",
        "signal",
        "fft",
        "integrate",
        "constants",
        "differentiate",
        "cluster.vq",
    ]
)
sklearn = import_module("sklearn")
bayes, lines, metrics, pairwise, scalers, selection = (
    import_module(f"sklearn.{name}")
    for name in (
        *["naive_bayes", "linear_model", "metrics", "metrics.pairwise"],
        *["preprocessing", "model_selection"],
    )
)
PCA = import_module("sklearn.decomposition").PCA
LinearDiscriminantAnalysis = import_module(
    "sklearn.discriminant_analysis"
).LinearDiscriminantAnalysis

Call = Callable[[Any], Any]


def data() -> tuple[np.ndarray, np.ndarray]:
    """Flowers of three kinds, made up: four lengths each, and the kind."""
    r = np.random.default_rng(7)
    middles = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
    kinds = np.repeat(np.arange(3, dtype=np.int32), 50)
    return (middles[kinds] + 0.4 * r.standard_normal((150, 4))).astype(np.float32), kinds


def of_scipy(kinds: Any) -> dict[str, Call]:
    """Calls of SciPy on the lengths."""
    return {
        "special.logsumexp": lambda x: special.logsumexp(x, axis=1),
        "special.softmax": lambda x: special.softmax(x, axis=1),
        "special.erf": lambda x: special.erf(x),
        "special.ndtri": lambda x: special.ndtri(special.expit(x)),
        "stats.zscore": lambda x: stats.zscore(x),
        "stats.skew": lambda x: stats.skew(x),
        "stats.kurtosis": lambda x: stats.kurtosis(x),
        "stats.pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 2]).statistic,
        "stats.ttest_ind": lambda x: stats.ttest_ind(x[:75, 0], x[75:, 0]).pvalue,
        "signal.detrend": lambda x: signal.detrend(x, axis=0, type="constant"),
        "signal.fftconvolve": lambda x: signal.fftconvolve(x[:, 0], x[:, 1]),
        "signal.hilbert": lambda x: signal.hilbert(x[:, 0]),
        "fft.rfft": lambda x: fft.rfft(x[:, 0]),
        "integrate.trapezoid": lambda x: integrate.trapezoid(x, axis=0),
        "cluster.vq.whiten": lambda x: vq.whiten(x),
        "constants": lambda x: constants.convert_temperature(x, "C", "K"),
        "differentiate": lambda x: differentiate.derivative(lambda v: v**3, x[:3, 0]).df,
    }


def of_sklearn(kinds: Any) -> dict[str, Call]:
    """Calls of scikit-learn on the lengths; `kinds` are in the library that they are."""
    return {
        "MinMaxScaler": lambda x: scalers.MinMaxScaler().fit_transform(x),
        "StandardScaler": lambda x: scalers.StandardScaler().fit_transform(x),
        "PCA": lambda x: abs(PCA(2, svd_solver="full").fit_transform(x)),
        "LinearDiscriminantAnalysis": lambda x: (
            LinearDiscriminantAnalysis().fit(x, kinds).predict_proba(x)
        ),
        "Ridge": lambda x: lines.Ridge(solver="svd").fit(x[:, :3], x[:, 3]).predict(x[:, :3]),
        "GaussianNB": lambda x: bayes.GaussianNB().fit(x, kinds).predict(x),
        "train_test_split": lambda x: selection.train_test_split(x, random_state=0)[1],
        "rbf_kernel": lambda x: pairwise.rbf_kernel(x),
        "accuracy_score": lambda x: metrics.accuracy_score(
            kinds, bayes.GaussianNB().fit(x, kinds).predict(x)
        ),
        "mean_squared_error": lambda x: metrics.mean_squared_error(x[:, 0], x[:, 1]),
        "r2_score": lambda x: metrics.r2_score(x[:, 0], x[:, 1]),
    }


def differences() -> Iterator[tuple[str, bool, float]]:
    """Of each call: its name, whether the result is of our arrays (or a Python number), and the largest
    difference from that of NumPy's, as a part of the largest element."""
    lengths, kinds = data()
    for calls in (of_scipy, of_sklearn):
        plain, own = calls(kinds), calls(mx.array(kinds))
        for name, call in plain.items():
            with sklearn.config_context(array_api_dispatch=True):
                want = np.asarray(call(lengths))
                got = own[name](mx.array(lengths))
            ours = isinstance(got, (mx.array, float, int))
            size = float(np.abs(want).max())
            yield name, ours, float(np.abs(np.asarray(got) - want).max()) / max(size, 1e-30)


if __name__ == "__main__":
    for name, ours, difference in differences():
        whose = "ours" if ours else "NOT OURS"
        print(f"{name:28} {whose}  {difference:.1e} from NumPy's")
        assert ours, name
        assert difference < 1e-3, name

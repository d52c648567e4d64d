"""Loss functions.

Each reduces its losses by `reduction`: "none" returns them all, "mean" their mean, "sum" their sum.
"""

import math
from typing import Literal, get_args

import ultramarine as mx

__all__ = [
    "binary_cross_entropy",
    "cosine_similarity_loss",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_loss",
    "huber_loss",
    "kl_div_loss",
    "l1_loss",
    "log_cosh_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
    "triplet_loss",
]

Reduction = Literal["none", "mean", "sum"]

# Dtypes for which the fused cross entropy is as accurate as the dtype itself.
_FUSED_CROSS_ENTROPY = (mx.float32, mx.float16, mx.bfloat16)


def _reduce(loss: mx.array, reduction: Reduction = "none") -> mx.array:
    """Reduces losses.

    Args:
        loss (array): Losses, of any shape.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: The losses, or their mean or sum, of shape ().

    Raises:
        ValueError: If the reduction is another.
    """
    if reduction == "mean":
        return mx.mean(loss)
    if reduction == "sum":
        return mx.sum(loss)
    if reduction == "none":
        return loss
    raise ValueError(f"Invalid reduction {reduction!r}. Must be one of {get_args(Reduction)}.")


def _require_same_shape(name: str, a: mx.array, other: str, b: mx.array) -> None:
    """Raises a ValueError if the shapes of two arrays differ."""
    if a.shape != b.shape:
        raise ValueError(f"{name} shape {a.shape} does not match {other} shape {b.shape}.")


def _weighted(loss: mx.array, weights: mx.array | None) -> mx.array:
    """Multiplies losses by weights of the same shape."""
    if weights is None:
        return loss
    if weights.shape != loss.shape:
        raise ValueError(
            f"Weights with shape {weights.shape} is not the same as output loss "
            f"with shape {loss.shape}."
        )
    return loss * weights


def _pick(scores: mx.array, targets: mx.array, axis: int) -> mx.array:
    """Returns the score of each target; `axis`, which the targets lack, is removed."""
    return mx.squeeze(mx.take_along_axis(scores, mx.expand_dims(targets, axis), axis), axis)


def cross_entropy(
    logits: mx.array,
    targets: mx.array,
    weights: mx.array | None = None,
    axis: int = -1,
    label_smoothing: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """Computes the cross entropy of logits and targets.

    For class indices that is `logsumexp(logits) - logits[target]`, for probabilities
    `logsumexp(logits) - sum(targets * logits)`. Class indices along the last axis are computed by
    `fast.cross_entropy`, which sums float16 and bfloat16 in float32.

    Args:
        logits (array): Unnormalised logits.
        targets (array): Class indices, of the shape of the logits without `axis`; or probabilities of
            the classes, of the shape of the logits.
        weights (array | None): Factor of each loss.
        axis (int): Axis of the classes.
        label_smoothing (float): Part of the target that is spread over all classes, in [0, 1).
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each target, or their mean or sum.

    Raises:
        ValueError: If the shapes do not fit, or the smoothing or the reduction is invalid.

    Example:
        >>> nn.losses.cross_entropy(mx.array([[2.0, -1.0], [-1.0, 2.0]]), mx.array([0, 1]))
        array([0.0485873, 0.0485873], dtype=float32)
    """
    if label_smoothing < 0 or label_smoothing >= 1:
        raise ValueError(f"Label smoothing must be in [0, 1), got {label_smoothing}.")
    shape = logits.shape
    probabilities = targets.ndim == len(shape)
    expected = list(shape)
    if not probabilities:
        expected.pop(axis)
    if targets.shape != tuple(expected):
        raise ValueError(f"Targets shape {targets.shape} does not match logits shape {shape}.")

    last = axis == -1 or axis == len(shape) - 1
    dtype = logits.dtype
    if last and not probabilities and label_smoothing == 0 and dtype in _FUSED_CROSS_ENTROPY:
        loss = mx.fast.cross_entropy(logits, targets).astype(dtype)
        return _reduce(_weighted(loss, weights), reduction)

    # Subtract the maximum first, because differences of small numbers lose less precision.
    # Probabilities that do not sum to 1 are also multiplied by these differences.
    logits = logits - mx.stop_gradient(mx.max(logits, axis=axis, keepdims=True))
    score = mx.sum(logits * targets, axis=axis) if probabilities else _pick(logits, targets, axis)
    if label_smoothing > 0:
        score = (1 - label_smoothing) * score + label_smoothing * mx.mean(logits, axis=axis)
    loss = mx.logsumexp(logits, axis=axis) - score
    return _reduce(_weighted(loss, weights), reduction)


def binary_cross_entropy(
    inputs: mx.array,
    targets: mx.array,
    weights: mx.array | None = None,
    with_logits: bool = True,
    reduction: Reduction = "mean",
) -> mx.array:
    """Computes the cross entropy of two classes.

    For logits x that is `log(1 + exp(x)) - x * t`, for probabilities p
    `-(t * log(p) + (1 - t) * log(1 - p))`, logarithms below -100 being taken as -100.

    Args:
        inputs (array): Logits; or probabilities, if `with_logits` is False.
        targets (array): Probabilities of the class 1, of the shape of the inputs.
        weights (array | None): Factor of each loss.
        with_logits (bool): Says that the inputs are logits.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each input, or their mean or sum.

    Raises:
        ValueError: If the shapes do not fit or the reduction is invalid.

    Example:
        >>> nn.losses.binary_cross_entropy(mx.array([0.0, 100.0]), mx.array([1, 1]), reduction="none")
        array([0.693147, 0], dtype=float32)
    """
    _require_same_shape("Inputs", inputs, "targets", targets)
    if with_logits:
        loss = mx.logaddexp(0.0, inputs) - inputs * targets
    else:
        hit = mx.maximum(mx.log(inputs), -100.0)
        miss = mx.maximum(mx.log(1 - inputs), -100.0)
        loss = -(targets * hit + (1 - targets) * miss)
    return _reduce(_weighted(loss, weights), reduction)


def l1_loss(predictions: mx.array, targets: mx.array, reduction: Reduction = "mean") -> mx.array:
    """Computes the absolute error, `abs(predictions - targets)`.

    Args:
        predictions (array): Predicted values.
        targets (array): True values, of the same shape.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each prediction, or their mean or sum.

    Raises:
        ValueError: If the shapes differ or the reduction is invalid.

    Example:
        >>> nn.losses.l1_loss(mx.array([1.0, 2.0]), mx.array([1.0, 4.0]))
        array(1, dtype=float32)
    """
    _require_same_shape("Predictions", predictions, "targets", targets)
    return _reduce(mx.abs(predictions - targets), reduction)


def mse_loss(predictions: mx.array, targets: mx.array, reduction: Reduction = "mean") -> mx.array:
    """Computes the squared error, `(predictions - targets) ** 2`.

    Args:
        predictions (array): Predicted values.
        targets (array): True values, of the same shape.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each prediction, or their mean or sum.

    Raises:
        ValueError: If the shapes differ or the reduction is invalid.

    Example:
        >>> nn.losses.mse_loss(mx.array([1.0, 2.0]), mx.array([1.0, 4.0]))
        array(2, dtype=float32)
    """
    _require_same_shape("Predictions", predictions, "targets", targets)
    return _reduce(mx.square(predictions - targets), reduction)


def nll_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    """Computes the negative log likelihood, `-inputs[target]`.

    Args:
        inputs (array): Log probabilities of the classes.
        targets (array): Class indices, of the shape of the inputs without `axis`.
        axis (int): Axis of the classes.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each target, or their mean or sum.

    Raises:
        ValueError: If the shapes do not fit or the reduction is invalid.

    Example:
        >>> nn.losses.nll_loss(mx.array([[-0.5, -1.0], [-2.0, -0.25]]), mx.array([0, 1]))
        array([0.5, 0.25], dtype=float32)
    """
    return _reduce(-_pick(inputs, targets, axis), reduction)


def gaussian_nll_loss(
    inputs: mx.array,
    targets: mx.array,
    vars: mx.array,
    full: bool = False,
    eps: float = 1e-6,
    reduction: Reduction = "mean",
) -> mx.array:
    """Computes the negative log likelihood of normal distributions.

    With `v = max(vars, eps)` that is `(log(v) + (inputs - targets) ** 2 / v) / 2`, and a constant.

    Args:
        inputs (array): Means.
        targets (array): Values that were drawn, of the shape of the means.
        vars (array): Variances, of the shape of the means.
        full (bool): Adds the constant `log(2 * pi) / 2`.
        eps (float): Least variance.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each target, or their mean or sum.

    Raises:
        ValueError: If the shapes differ or the reduction is invalid.

    Example:
        >>> nn.losses.gaussian_nll_loss(mx.array([1.0, 2.0]), mx.array([1.0, 4.0]), mx.array([1.0, 1.0]))
        array(1, dtype=float32)
    """
    _require_same_shape("Inputs", inputs, "targets", targets)
    _require_same_shape("Inputs", inputs, "vars", vars)
    vars = mx.maximum(vars, eps)
    loss = 0.5 * (mx.log(vars) + mx.square(targets - inputs) / vars)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


def kl_div_loss(
    inputs: mx.array, targets: mx.array, axis: int = -1, reduction: Reduction = "none"
) -> mx.array:
    """Computes the Kullback-Leibler divergence, `sum(exp(targets) * (targets - inputs))`.

    Args:
        inputs (array): Log probabilities of the prediction.
        targets (array): Log probabilities of the truth.
        axis (int): Axis of the distributions.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Divergence of each pair of distributions, or their mean or sum.

    Raises:
        ValueError: If the shapes cannot be broadcast or the reduction is invalid.

    Example:
        >>> p, q = mx.log(mx.array([[0.5, 0.5]])), mx.log(mx.array([[0.25, 0.75]]))
        >>> nn.losses.kl_div_loss(q, p)
        array([0.143841], dtype=float32)
    """
    return _reduce(mx.sum(mx.exp(targets) * (targets - inputs), axis=axis), reduction)


def smooth_l1_loss(
    predictions: mx.array, targets: mx.array, beta: float = 1.0, reduction: Reduction = "mean"
) -> mx.array:
    """Computes the absolute error, made smooth around 0.

    An error d is `d ** 2 / (2 * beta)` below beta, and `d - beta / 2` from there on.

    Args:
        predictions (array): Predicted values.
        targets (array): True values, of the same shape.
        beta (float): Error where the square ends; 0 gives the absolute error.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each prediction, or their mean or sum.

    Raises:
        ValueError: If the shapes differ or the reduction is invalid.

    Example:
        >>> nn.losses.smooth_l1_loss(mx.array([1.0, 2.0]), mx.array([1.5, 4.0]), reduction="none")
        array([0.125, 1.5], dtype=float32)
    """
    _require_same_shape("Predictions", predictions, "targets", targets)
    error = mx.abs(predictions - targets)
    if beta == 0:
        return _reduce(error, reduction)
    loss = mx.where(error < beta, (0.5 / beta) * mx.square(error), error - 0.5 * beta)
    return _reduce(loss, reduction)


def huber_loss(
    inputs: mx.array, targets: mx.array, delta: float = 1.0, reduction: Reduction = "none"
) -> mx.array:
    """Computes Huber's loss.

    An error d is `d ** 2 / 2` up to delta, and `delta * (d - delta / 2)` beyond.

    Args:
        inputs (array): Predicted values.
        targets (array): True values.
        delta (float): Error where the square ends.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each input, or their mean or sum.

    Raises:
        ValueError: If the shapes cannot be broadcast or the reduction is invalid.

    Example:
        >>> nn.losses.huber_loss(mx.array([1.0, 2.0]), mx.array([1.5, 4.0]))
        array([0.125, 1.5], dtype=float32)
    """
    error = mx.abs(inputs - targets)
    square = mx.minimum(error, delta)
    return _reduce(square * (error - 0.5 * square), reduction)


def log_cosh_loss(inputs: mx.array, targets: mx.array, reduction: Reduction = "none") -> mx.array:
    """Computes `log(cosh(inputs - targets))`: a half of the square of small errors, the absolute of large.

    Args:
        inputs (array): Predicted values.
        targets (array): True values.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each input, or their mean or sum.

    Raises:
        ValueError: If the shapes cannot be broadcast or the reduction is invalid.

    Example:
        >>> nn.losses.log_cosh_loss(mx.array([1.0, 2.0]), mx.array([1.0, 3.0]))
        array([0, 0.433781], dtype=float32)
    """
    error = inputs - targets
    return _reduce(mx.logaddexp(error, -error) - math.log(2), reduction)


def hinge_loss(inputs: mx.array, targets: mx.array, reduction: Reduction = "none") -> mx.array:
    """Computes the hinge loss, `max(0, 1 - inputs * targets)`.

    Args:
        inputs (array): Predicted values.
        targets (array): Classes, 1 or -1.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each input, or their mean or sum.

    Raises:
        ValueError: If the shapes cannot be broadcast or the reduction is invalid.

    Example:
        >>> nn.losses.hinge_loss(mx.array([0.5, 2.0]), mx.array([1, -1]))
        array([0.5, 3], dtype=float32)
    """
    return _reduce(mx.maximum(1 - inputs * targets, 0), reduction)


def margin_ranking_loss(
    inputs1: mx.array,
    inputs2: mx.array,
    targets: mx.array,
    margin: float = 0.0,
    reduction: Reduction = "none",
) -> mx.array:
    """Computes the margin ranking loss, `max(0, margin - targets * (inputs1 - inputs2))`.

    Args:
        inputs1 (array): First scores.
        inputs2 (array): Second scores, of the same shape.
        targets (array): 1 where the first should be the higher, else -1; of the same shape.
        margin (float): Difference that the scores should have.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each pair, or their mean or sum.

    Raises:
        ValueError: If the shapes differ or the reduction is invalid.

    Example:
        >>> nn.losses.margin_ranking_loss(mx.array([1.0]), mx.array([3.0]), mx.array([1]))
        array([2], dtype=float32)
    """
    if not (inputs1.shape == inputs2.shape == targets.shape):
        raise ValueError(
            "The shapes of the arguments do not match. The provided shapes are "
            f"inputs1.shape={inputs1.shape}, inputs2.shape={inputs2.shape}, and "
            f"targets.shape={targets.shape}."
        )
    return _reduce(mx.maximum(0, margin - targets * (inputs1 - inputs2)), reduction)


def cosine_similarity_loss(
    x1: mx.array, x2: mx.array, axis: int = 1, eps: float = 1e-8, reduction: Reduction = "none"
) -> mx.array:
    """Computes the cosine of the angle between vectors, `sum(x1 * x2) / max(norm(x1) * norm(x2), eps)`.

    Args:
        x1 (array): First vectors.
        x2 (array): Second vectors.
        axis (int): Axis of the vectors.
        eps (float): Least denominator.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Cosine of each pair, or their mean or sum.

    Raises:
        ValueError: If the shapes cannot be broadcast or the reduction is invalid.

    Example:
        >>> nn.losses.cosine_similarity_loss(mx.array([[1.0, 0.0]]), mx.array([[2.0, 0.0]]))
        array([1], dtype=float32)
    """
    norms = mx.linalg.norm(x1, axis=axis) * mx.linalg.norm(x2, axis=axis)
    return _reduce(mx.sum(x1 * x2, axis=axis) / mx.maximum(norms, eps), reduction)


def triplet_loss(
    anchors: mx.array,
    positives: mx.array,
    negatives: mx.array,
    axis: int = -1,
    p: int = 2,
    margin: float = 1.0,
    eps: float = 1e-6,
    reduction: Reduction = "none",
) -> mx.array:
    """Computes the triplet loss, `max(0, |anchors - positives| - |anchors - negatives| + margin)`.

    Distances are `(sum(abs(difference) ** p) + eps) ** (1 / p)`.

    Args:
        anchors (array): Anchors.
        positives (array): Samples that should be near.
        negatives (array): Samples that should be farther, by `margin`.
        axis (int): Axis of the vectors.
        p (int): Degree of the norm.
        margin (float): Difference that the distances should have.
        eps (float): Number that is added to the sum, which keeps gradients finite.
        reduction (str): "none", "mean" or "sum".

    Returns:
        array: Loss of each triplet, or their mean or sum.

    Raises:
        ValueError: If the shapes cannot be broadcast or the reduction is invalid.

    Example:
        >>> nn.losses.triplet_loss(mx.array([[0.0, 0.0]]), mx.array([[3.0, 4.0]]), mx.array([[0.0, 2.0]]))
        array([4], dtype=float32)
    """

    def distance(other: mx.array) -> mx.array:
        powers = mx.power(mx.abs(anchors - other), p)
        return mx.power(mx.sum(powers, axis=axis) + eps, 1.0 / p)

    loss = mx.maximum(distance(positives) - distance(negatives) + margin, 0)
    return _reduce(loss, reduction)

"""Logistic regression by gradient descent, with mlx.core alone."""

import mlx.core as mx


def data(key: mx.array, n: int, size: int) -> tuple[mx.array, mx.array, mx.array]:
    """Points, and on which side of a plane each is."""
    plane, points, noise = (
        mx.random.normal(shape, key=k)
        for k, shape in zip(mx.random.split(key, 3), [(size,), (n, size), (n,)])
    )
    return plane, points, (points @ plane + 0.1 * noise > 0).astype(mx.float32)


def loss(w: mx.array, x: mx.array, y: mx.array) -> mx.array:
    z = x @ w
    return mx.mean(mx.logaddexp(mx.array(0.0), z) - y * z) + 1e-4 * mx.sum(w * w)


def main() -> None:
    plane, x, y = data(mx.random.key(3), 1000, 20)
    w = mx.zeros(20)
    step = mx.value_and_grad(loss)
    for i in range(60):
        value, g = step(w, x, y)
        w = w - 2.0 * g
        mx.eval(w)
        if i % 10 == 0:
            print("loss", i, value.item())
    print("right", mx.mean((x @ w > 0) == y).item())
    print("cosine", (mx.inner(w, plane) / mx.linalg.norm(w) / mx.linalg.norm(plane)).item())
    # The curvature, by vectors through a gradient of a gradient, and by all at once.
    product = lambda v: mx.grad(lambda u: mx.inner(mx.grad(loss)(u, x, y), v))(w)
    hessian = mx.vmap(product)(mx.eye(20))
    print("curvature", *mx.linalg.eigvalsh(hessian, stream=mx.cpu)[-3:].tolist())


if __name__ == "__main__":
    main()

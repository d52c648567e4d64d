"""The workloads in JAX, compiled where that pays."""

import jax
import jax.numpy as jnp

from bench.cpu.data import (
    ATTENTION,
    CONV,
    DIGITS,
    LAYER,
    LONG,
    MLP,
    ROWS,
    TOP,
    N,
    Thunk,
    cache_data,
    embedding_data,
    layer_data,
    mlp_data,
    normal,
)


def workloads() -> dict[str, "Thunk"]:
    def over(make, *arrays, dtype=None):
        inputs = [jnp.asarray(a, dtype) for a in arrays]
        compiled = jax.jit(make)
        return lambda: compiled(*inputs).block_until_ready()

    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def layer_norm(x, w, b):
        centred = x - x.mean(-1, keepdims=True)
        var = (centred * centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(var + 1e-5) * w + b

    def attention(q, k, v):
        scores = (q * ATTENTION[-1] ** -0.5) @ k.swapaxes(-1, -2)
        return jax.nn.softmax(scores, -1) @ v

    def tiny():
        x0, y = jnp.array([1.0, 2, 3, 4]), jnp.array([0.5, 0.6, 0.7, 0.8])

        def run():
            x = x0
            for _ in range(500):
                x = x + y
                x = x * y
            x.block_until_ready()

        return run

    def tiny_compiled():
        @jax.jit
        def chain(x, y):
            for _ in range(500):
                x = x + y
                x = x * y
            return x

        x, y = jnp.array([1.0, 2, 3, 4]), jnp.array([0.5, 0.6, 0.7, 0.8])
        return lambda: chain(x, y).block_until_ready()

    def layer():
        tokens, channels, heads = LAYER
        x, weights = layer_data()
        x, weights = jnp.asarray(x), {k: jnp.asarray(v) for k, v in weights.items()}
        norm = lambda y: y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5)

        @jax.jit
        def layer(x, w):
            h = norm(x)
            q, k, v = ((h @ w[n]).reshape(tokens, heads, -1).transpose(1, 0, 2) for n in "qkv")
            scores = jax.nn.softmax(q @ k.swapaxes(1, 2) * (channels // heads) ** -0.5, -1)
            x = x + (scores @ v).transpose(1, 0, 2).reshape(tokens, channels) @ w["o"]
            return x + jnp.maximum(norm(x) @ w["up"], 0) @ w["down"]

        return lambda: layer(x, weights).block_until_ready()

    def train(sizes=MLP):
        params, x, labels = mlp_data(sizes)
        x, labels = jnp.asarray(x), jnp.asarray(labels)

        def loss(p):
            hidden = jnp.maximum(x @ p["w1"] + p["b1"], 0)
            out = hidden @ p["w2"] + p["b2"]
            return jnp.mean(jax.nn.logsumexp(out, 1) - out[jnp.arange(sizes[0]), labels])

        @jax.jit
        def step(p):
            value, grads = jax.value_and_grad(loss)(p)
            return value, {k: v - 0.01 * grads[k] for k, v in p.items()}

        state = {"p": {k: jnp.asarray(v) for k, v in params.items()}}

        def run():
            value, state["p"] = step(state["p"])
            jax.block_until_ready((value, state["p"]))

        return run

    def conv2d(x, w):
        layout = ("NHWC", "OHWI", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)

    def embedding():
        table, rows = map(jnp.asarray, embedding_data())
        compiled = jax.jit(lambda t, r: t[r])
        return lambda: compiled(table, rows).block_until_ready()

    def normals():
        compiled = jax.jit(lambda k: jax.random.normal(k, (N, N)))
        key = jax.random.key(0)
        return lambda: compiled(key).block_until_ready()

    pair = lambda n: (normal(n, n), normal(n, n, seed=1))

    def cache():
        cache, row, places = cache_data()
        cache, row, *places = map(jnp.asarray, (cache, row, *places))
        write = jax.jit(
            lambda c, u, at: jax.lax.dynamic_update_slice_in_dim(c, u, at[0], 2), donate_argnums=0
        )
        state = {"c": cache}

        def run():
            for at in places:
                state["c"] = write(state["c"], row, at)
            state["c"].block_until_ready()

        return run

    return {
        "4x + 2y": lambda: over(lambda x, y: 4 * x + 2 * y, *pair(N)),
        "tanh-gelu": lambda: over(gelu, normal(N, N)),
        "exp": lambda: over(jnp.exp, normal(N, N)),
        "x + row": lambda: over(jnp.add, normal(N, N), normal(N)),
        "transpose": lambda: over(lambda x: x.T, normal(N, N)),
        "sum rows": lambda: over(lambda x: x.sum(1), normal(N, N)),
        "sum columns": lambda: over(lambda x: x.sum(0), normal(N, N)),
        "softmax": lambda: over(lambda x: jax.nn.softmax(x, -1), normal(N, N)),
        "layer norm": lambda: over(layer_norm, normal(N, N), normal(N), normal(N)),
        "matmul 2048": lambda: over(jnp.matmul, *pair(2048)),
        "matmul 1024 A^T": lambda: over(lambda a, b: a.T @ b, *pair(1024)),
        "matmul 1024 bf16": lambda: over(jnp.matmul, *pair(1024), dtype=jnp.bfloat16),
        "matrix-vector": lambda: over(jnp.matmul, normal(N, N), normal(N)),
        "batched matmul": lambda: over(jnp.matmul, normal(64, 128, 128), normal(64, 128, 128)),
        "attention": lambda: over(attention, *(normal(*ATTENTION, seed=s) for s in range(3))),
        "sort": lambda: over(lambda x: jnp.sort(x, -1), normal(*ROWS)),
        "sort 16M": lambda: over(jnp.sort, normal(LONG)),
        "sort columns": lambda: over(lambda x: jnp.sort(x, 0), normal(N, N)),
        "argsort": lambda: over(lambda x: jnp.argsort(x, -1), normal(*ROWS)),
        "top 64": lambda: over(lambda x: jax.lax.top_k(x, TOP)[0], normal(*ROWS)),
        "embedding": embedding,
        "64 cache writes": cache,
        "cumsum rows": lambda: over(lambda x: jnp.cumsum(x, 1), normal(N, N)),
        "cumsum columns": lambda: over(lambda x: jnp.cumsum(x, 0), normal(N, N)),
        "cumsum 16M": lambda: over(jnp.cumsum, normal(LONG)),
        "rfft": lambda: over(jnp.fft.rfft, normal(*ROWS)),
        "conv2d": lambda: over(conv2d, *(normal(*s) for s in CONV)),
        "normals": normals,
        "1000 tiny ops": tiny,
        "1000 tiny ops, compiled": tiny_compiled,
        "small layer, compiled": layer,
        "training step": train,
        "small training step, compiled": lambda: train(DIGITS),
    }

"""The workloads in Ultramarine and in mlx, whose Python is the same."""

from types import ModuleType

from bench.cpu.data import (
    ATTENTION,
    CHANNELS,
    CONV,
    DIGITS,
    LAYER,
    LONG,
    MATRIX,
    MLP,
    QUANTIZED,
    ROWS,
    SETS,
    TOKENS,
    TOP,
    N,
    Thunk,
    cache_data,
    embedding_data,
    heads,
    in_turn,
    layer_data,
    mlp_data,
    normal,
    symmetric,
)


def workloads(mx: ModuleType) -> dict[str, "Thunk"]:  # each makes its inputs, returns its run
    def over(make, *arrays):
        inputs = [mx.array(a) for a in arrays]
        mx.eval(inputs)
        return lambda: mx.eval(make(*inputs))

    def big():
        return normal(N, N), normal(N, N, seed=1)

    def gelu(x):
        return 0.5 * x * (1 + mx.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def layer_norm(x, w, b):
        mean = mx.mean(x, axis=-1, keepdims=True)
        centred = x - mean
        var = mx.mean(centred * centred, axis=-1, keepdims=True)
        return centred * mx.rsqrt(var + 1e-5) * w + b

    def attention(q, k, v):
        scores = (q * ATTENTION[-1] ** -0.5) @ mx.swapaxes(k, -1, -2)
        return mx.softmax(scores, axis=-1) @ v

    def fast_attention(mask=None):
        def make(q, k, v):
            scale = ATTENTION[-1] ** -0.5
            return mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)

        return make

    def gradient(make, wrt, *arrays):
        """The gradient by some arguments, of a cotangent of the result's shape, which is the last array."""
        *inputs, cotangent = map(mx.array, arrays)

        def run():
            def of(*some):
                return make(*(dict(zip(wrt, some)).get(i, x) for i, x in enumerate(inputs)))

            mx.eval(mx.vjp(of, [inputs[i] for i in wrt], [cotangent])[1])

        return run

    def conv2d(x, w):
        return mx.conv2d(x, w, padding=1)

    def conv2d_by_channel(x, w):
        return mx.conv2d(x, w, padding=3, groups=CHANNELS[1][0])

    def on_cpu(function, *arguments):
        # MLX has decompositions on its CPU alone.
        return lambda a: function(a, *arguments, stream=mx.cpu)

    def halves():
        inputs = [mx.array(normal(1024, 1024, seed=s)).astype(mx.bfloat16) for s in (0, 1)]
        mx.eval(inputs)
        return lambda: mx.eval(inputs[0] @ inputs[1])

    def vectors():
        k, n = QUANTIZED
        x = mx.array(normal(1, k)).astype(mx.bfloat16)
        sets = [mx.array(normal(n, k, seed=s)).astype(mx.bfloat16) for s in range(SETS)]
        mx.eval(x, sets)
        return in_turn([lambda w=w: mx.eval(x @ w.T) for w in sets])

    def products(rows, bits=None):
        k, n = QUANTIZED
        x, sets = mx.array(normal(rows, k)), []
        for seed in range(SETS):
            w = mx.array(normal(n, k, seed=seed))
            sets.append((w,) if bits is None else mx.quantize(w, bits=bits))
            mx.eval(x, sets[-1])
        if bits is None:
            return in_turn([lambda w=w: mx.eval(x @ w.T) for (w,) in sets])
        return in_turn([lambda q=q: mx.eval(mx.quantized_matmul(x, *q, bits=bits)) for q in sets])

    def tiny():
        x0, y = mx.array([1.0, 2.0, 3.0, 4.0]), mx.array([0.5, 0.6, 0.7, 0.8])
        mx.eval(x0, y)

        def run():
            x = x0
            for _ in range(500):
                x = x + y
                x = x * y
            mx.eval(x)

        return run

    def tiny_compiled():
        x, y = mx.array([1.0, 2.0, 3.0, 4.0]), mx.array([0.5, 0.6, 0.7, 0.8])
        mx.eval(x, y)

        @mx.compile
        def chain(x, y):
            for _ in range(500):
                x = x + y
                x = x * y
            return x

        return lambda: mx.eval(chain(x, y))

    def layer():
        tokens, channels, heads = LAYER
        x, weights = layer_data()
        x, weights = mx.array(x), {k: mx.array(v) for k, v in weights.items()}
        mx.eval(x, weights)

        @mx.compile
        def layer(x, w):
            h = mx.fast.rms_norm(x, None, 1e-5)
            split = lambda y: y.reshape(tokens, heads, -1).transpose(1, 0, 2)
            q, k, v = (split(h @ w[n]) for n in "qkv")
            scores = mx.softmax(q @ k.swapaxes(1, 2) * (channels // heads) ** -0.5, axis=-1)
            x = x + (scores @ v).transpose(1, 0, 2).reshape(tokens, channels) @ w["o"]
            h = mx.fast.rms_norm(x, None, 1e-5)
            return x + mx.maximum(h @ w["up"], 0) @ w["down"]

        return lambda: mx.eval(layer(x, weights))

    def train(sizes=MLP, compiled=False):
        params, x, labels = mlp_data(sizes)
        params = {k: mx.array(v) for k, v in params.items()}
        x, labels = mx.array(x), mx.array(labels)
        rows = mx.arange(sizes[0])

        def loss(p):
            hidden = mx.maximum(x @ p["w1"] + p["b1"], 0)
            out = hidden @ p["w2"] + p["b2"]
            return mx.mean(mx.logsumexp(out, axis=1) - out[rows, labels])

        gradient = mx.value_and_grad(loss)
        state = {"p": params}

        def update(p):
            value, grads = gradient(p)
            return value, {k: v - 0.01 * grads[k] for k, v in p.items()}

        step = mx.compile(update) if compiled else update

        def run():
            value, state["p"] = step(state["p"])
            mx.eval(value, state["p"])

        return run

    def embedding():
        table, rows = map(mx.array, embedding_data())
        mx.eval(table, rows)
        return lambda: mx.eval(table[rows])

    def cache():
        cache, row, places = cache_data()
        state, row, places = {"c": mx.array(cache)}, mx.array(row), [mx.array(p) for p in places]
        mx.eval(state, row, places)

        def run():
            for at in places:
                state["c"] = mx.slice_update(state["c"], row, at, (2,))
                mx.eval(state["c"])

        return run

    return {
        "4x + 2y": lambda: over(lambda x, y: 4 * x + 2 * y, *big()),
        "tanh-gelu": lambda: over(gelu, normal(N, N)),
        "exp": lambda: over(mx.exp, normal(N, N)),
        "x + row": lambda: over(lambda x, r: x + r, normal(N, N), normal(N)),
        "transpose": lambda: over(lambda x: mx.contiguous(x.T), normal(N, N)),
        "sum rows": lambda: over(lambda x: mx.sum(x, axis=1), normal(N, N)),
        "sum columns": lambda: over(lambda x: mx.sum(x, axis=0), normal(N, N)),
        "softmax": lambda: over(lambda x: mx.softmax(x, axis=-1), normal(N, N)),
        "layer norm": lambda: over(layer_norm, normal(N, N), normal(N), normal(N)),
        "matmul 2048": lambda: over(mx.matmul, normal(2048, 2048), normal(2048, 2048, seed=1)),
        "matmul 1024 A^T": lambda: over(
            lambda a, b: a.T @ b, normal(1024, 1024), normal(1024, 1024, seed=1)
        ),
        "matmul 1024 bf16": halves,
        "matrix-vector": lambda: over(mx.matmul, normal(N, N), normal(N)),
        "matrix-vector bf16": vectors,
        "4 bits, 1 row": lambda: products(1, 4),
        "float32, 512 rows": lambda: products(TOKENS),
        "4 bits, 512 rows": lambda: products(TOKENS, 4),
        "batched matmul": lambda: over(mx.matmul, normal(64, 128, 128), normal(64, 128, 128)),
        "attention": lambda: over(attention, *(normal(*ATTENTION, seed=s) for s in range(3))),
        "fast attention": lambda: over(fast_attention(), *heads(3)),
        "fast attention, causal": lambda: over(fast_attention("causal"), *heads(3)),
        "fast attention gradient": lambda: gradient(fast_attention(), (0, 1, 2), *heads(4)),
        "sort": lambda: over(lambda x: mx.sort(x, axis=-1), normal(*ROWS)),
        "sort 16M": lambda: over(lambda x: mx.sort(x), normal(LONG)),
        "sort columns": lambda: over(lambda x: mx.sort(x, axis=0), normal(N, N)),
        "eigvalsh": lambda: over(on_cpu(mx.linalg.eigvalsh), symmetric()),
        "eigh": lambda: over(on_cpu(mx.linalg.eigh), symmetric()),
        "singular values": lambda: over(on_cpu(mx.linalg.svd, False), normal(*MATRIX)),
        "svd": lambda: over(on_cpu(mx.linalg.svd), normal(*MATRIX)),
        "argsort": lambda: over(lambda x: mx.argsort(x, axis=-1), normal(*ROWS)),
        "top 64": lambda: over(lambda x: mx.topk(x, TOP, axis=-1), normal(*ROWS)),
        "partition": lambda: over(lambda x: mx.partition(x, TOP, axis=-1), normal(*ROWS)),
        "argpartition": lambda: over(lambda x: mx.argpartition(x, TOP, axis=-1), normal(*ROWS)),
        "embedding": embedding,
        "64 cache writes": cache,
        "cumsum rows": lambda: over(lambda x: mx.cumsum(x, axis=1), normal(N, N)),
        "cumsum columns": lambda: over(lambda x: mx.cumsum(x, axis=0), normal(N, N)),
        "cumsum 16M": lambda: over(lambda x: mx.cumsum(x), normal(LONG)),
        "rfft": lambda: over(lambda x: mx.fft.rfft(x), normal(*ROWS)),
        "conv2d": lambda: over(conv2d, *(normal(*s) for s in CONV)),
        "conv2d by channel": lambda: over(conv2d_by_channel, *(normal(*s) for s in CHANNELS)),
        "conv2d by input": lambda: gradient(conv2d, (0,), *(normal(*s) for s in CONV + CONV[:1])),
        "conv2d by weight": lambda: gradient(conv2d, (1,), *(normal(*s) for s in CONV + CONV[:1])),
        "normals": lambda: lambda: mx.eval(mx.random.normal((N, N))),
        "1000 tiny ops": tiny,
        "1000 tiny ops, compiled": tiny_compiled,
        "small layer, compiled": layer,
        "training step": train,
        "small training step": lambda: train(DIGITS),
        "small training step, compiled": lambda: train(DIGITS, compiled=True),
    }

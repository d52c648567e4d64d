"""The workloads in PyTorch, eager."""

import torch

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


def workloads() -> dict[str, "Thunk"]:
    def over(make, *arrays):
        inputs = [torch.from_numpy(a) for a in arrays]

        def run():
            with torch.no_grad():
                make(*inputs)

        return run

    def gelu(x):
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    def layer_norm(x, w, b):
        return torch.nn.functional.layer_norm(x, (N,), w, b, 1e-5)

    def attention(q, k, v):
        scores = (q * ATTENTION[-1] ** -0.5) @ k.transpose(-1, -2)
        return torch.softmax(scores, -1) @ v

    def fast_attention(causal=False):
        return lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal
        )

    def attention_gradient():
        q, k, v, cotangent = map(torch.from_numpy, heads(4))
        leaves = [t.requires_grad_() for t in (q, k, v)]
        return lambda: torch.autograd.grad(fast_attention()(*leaves), leaves, cotangent)

    def halves():
        a, b = (torch.from_numpy(normal(1024, 1024, seed=s)).bfloat16() for s in (0, 1))
        return lambda: a @ b

    def vectors():
        k, n = QUANTIZED
        x = torch.from_numpy(normal(1, k)).bfloat16()
        sets = [torch.from_numpy(normal(n, k, seed=s)).bfloat16() for s in range(SETS)]
        return in_turn([lambda w=w: x @ w.T for w in sets])

    def products(rows):
        k, n = QUANTIZED
        x = torch.from_numpy(normal(rows, k))
        sets = [torch.from_numpy(normal(n, k, seed=s)) for s in range(SETS)]
        return in_turn([lambda w=w: x @ w.T for w in sets])

    def quantized(rows):
        """4 bits in groups of 64, in the layout that torch has for them; bfloat16, for which it has kernels."""
        k, n = QUANTIZED
        x = torch.from_numpy(normal(rows, k)).bfloat16()
        scales = torch.full((k // 64, n, 2), 0.1, dtype=torch.bfloat16)
        codes = [torch.from_numpy(normal(n, k, seed=s) * 3 + 8) for s in range(SETS)]
        codes = [c.round().clamp(0, 15).int() for c in codes]
        sets = [torch._convert_weight_to_int4pack_for_cpu(c, 1) for c in codes]
        return in_turn(
            [lambda w=w: torch._weight_int4pack_mm_for_cpu(x, w, 64, scales) for w in sets]
        )

    def tiny():
        x0, y = torch.tensor([1.0, 2, 3, 4]), torch.tensor([0.5, 0.6, 0.7, 0.8])

        def run():
            x = x0
            for _ in range(500):
                x = x + y
                x = x * y

        return run

    def layer():
        tokens, channels, heads = LAYER
        x, weights = layer_data()
        x, w = torch.from_numpy(x), {k: torch.from_numpy(v) for k, v in weights.items()}

        def run():
            h = torch.nn.functional.rms_norm(x, (channels,), eps=1e-5)
            q, k, v = ((h @ w[n]).view(tokens, heads, -1).transpose(0, 1) for n in "qkv")
            scores = torch.softmax(q @ k.transpose(1, 2) * (channels // heads) ** -0.5, -1)
            y = x + (scores @ v).transpose(0, 1).reshape(tokens, channels) @ w["o"]
            h = torch.nn.functional.rms_norm(y, (channels,), eps=1e-5)
            return y + torch.relu(h @ w["up"]) @ w["down"]

        return run

    def train(sizes=MLP):
        params, x, labels = mlp_data(sizes)
        p = {k: torch.from_numpy(v).requires_grad_() for k, v in params.items()}
        x, labels = torch.from_numpy(x), torch.from_numpy(labels).long()

        def run():
            hidden = torch.relu(x @ p["w1"] + p["b1"])
            out = hidden @ p["w2"] + p["b2"]
            torch.nn.functional.cross_entropy(out, labels).backward()
            with torch.no_grad():
                for v in p.values():
                    v -= 0.01 * v.grad
                    v.grad = None

        return run

    def embedding():
        table, rows = map(torch.from_numpy, embedding_data())
        return lambda: torch.nn.functional.embedding(rows, table)

    def conv2d(shapes=CONV, padding=1, groups=1):
        # As the others' memory: channels last.
        x, w = (torch.from_numpy(normal(*s)).permute(0, 3, 1, 2) for s in shapes)

        def run():
            with torch.no_grad():
                torch.nn.functional.conv2d(x, w, padding=padding, groups=groups)

        return run

    def conv2d_gradient(wrt):
        x, w, cotangent = (
            torch.from_numpy(normal(*s)).permute(0, 3, 1, 2) for s in CONV + CONV[:1]
        )
        ones, needed = [1, 1], [wrt == 0, wrt == 1, False]
        return lambda: torch.ops.aten.convolution_backward(
            cotangent, x, w, None, ones, ones, ones, False, [0, 0], 1, needed
        )

    def cache():
        cache, row, places = cache_data()
        cache, row, *places = map(torch.from_numpy, (cache, row, *places))

        def run():
            for at in places:
                cache.index_copy_(2, at, row)

        return run

    return {
        "4x + 2y": lambda: over(lambda x, y: 4 * x + 2 * y, normal(N, N), normal(N, N, seed=1)),
        "tanh-gelu": lambda: over(gelu, normal(N, N)),
        "exp": lambda: over(torch.exp, normal(N, N)),
        "x + row": lambda: over(torch.add, normal(N, N), normal(N)),
        "transpose": lambda: over(lambda x: x.T.contiguous(), normal(N, N)),
        "sum rows": lambda: over(lambda x: x.sum(1), normal(N, N)),
        "sum columns": lambda: over(lambda x: x.sum(0), normal(N, N)),
        "softmax": lambda: over(lambda x: torch.softmax(x, -1), normal(N, N)),
        "layer norm": lambda: over(layer_norm, normal(N, N), normal(N), normal(N)),
        "matmul 2048": lambda: over(torch.matmul, normal(2048, 2048), normal(2048, 2048, seed=1)),
        "matmul 1024 A^T": lambda: over(
            lambda a, b: a.T @ b, normal(1024, 1024), normal(1024, 1024, seed=1)
        ),
        "matmul 1024 bf16": halves,
        "matrix-vector": lambda: over(torch.matmul, normal(N, N), normal(N)),
        "matrix-vector bf16": vectors,
        "4 bits, 1 row": lambda: quantized(1),
        "float32, 512 rows": lambda: products(TOKENS),
        "4 bits, 512 rows": lambda: quantized(TOKENS),
        "batched matmul": lambda: over(torch.matmul, normal(64, 128, 128), normal(64, 128, 128)),
        "attention": lambda: over(attention, *(normal(*ATTENTION, seed=s) for s in range(3))),
        "fast attention": lambda: over(fast_attention(), *heads(3)),
        "fast attention, causal": lambda: over(fast_attention(True), *heads(3)),
        "fast attention gradient": attention_gradient,
        "sort": lambda: over(lambda x: torch.sort(x, -1), normal(*ROWS)),
        "sort 16M": lambda: over(torch.sort, normal(LONG)),
        "sort columns": lambda: over(lambda x: torch.sort(x, 0), normal(N, N)),
        "eigvalsh": lambda: over(torch.linalg.eigvalsh, symmetric()),
        "eigh": lambda: over(torch.linalg.eigh, symmetric()),
        "singular values": lambda: over(torch.linalg.svdvals, normal(*MATRIX)),
        "svd": lambda: over(torch.linalg.svd, normal(*MATRIX)),
        "argsort": lambda: over(lambda x: torch.argsort(x, -1), normal(*ROWS)),
        "top 64": lambda: over(lambda x: torch.topk(x, TOP), normal(*ROWS)),
        "embedding": embedding,
        "64 cache writes": cache,
        "cumsum rows": lambda: over(lambda x: torch.cumsum(x, 1), normal(N, N)),
        "cumsum columns": lambda: over(lambda x: torch.cumsum(x, 0), normal(N, N)),
        "cumsum 16M": lambda: over(lambda x: torch.cumsum(x, 0), normal(LONG)),
        "rfft": lambda: over(torch.fft.rfft, normal(*ROWS)),
        "conv2d": conv2d,
        "conv2d by channel": lambda: conv2d(CHANNELS, 3, CHANNELS[1][0]),
        "conv2d by input": lambda: conv2d_gradient(0),
        "conv2d by weight": lambda: conv2d_gradient(1),
        "normals": lambda: lambda: torch.randn(N, N),
        "1000 tiny ops": tiny,
        "small layer, compiled": layer,
        "training step": train,
        "small training step": lambda: train(DIGITS),
    }

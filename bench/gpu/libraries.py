"""What vendors have libraries for, beside torch: Fourier transforms, decompositions, random numbers."""

from __future__ import annotations

import numpy as np

import ultramarine as mx
from bench.gpu.timing import close, ours, pair, row, theirs, torch


def real_transform(shape: tuple[int, ...], rate: float) -> None:
    x, t = pair(shape)
    name = f"rfft {' x '.join(map(str, shape))}"
    if torch is not None:
        want = torch.view_as_real(torch.fft.rfft(t))
        close(name, mx.view(mx.fft.rfft(x), mx.float32).reshape(want.shape), want, 1e-5)
    mine, other = ours(lambda: mx.fft.rfft(x)), theirs(lambda: torch.fft.rfft(t))
    row("libraries", name, mine, other, 8 * x.size / rate)


def transforms(rate: float) -> None:
    for shape in [(1024, 65536), (4096, 4096), (1 << 24,), (1024, 10007)]:
        real_transform(shape, rate)
    x, t = pair((64, 512, 512))
    mine, other = ours(lambda: mx.fft.fft2(x)), theirs(lambda: torch.fft.fft2(t))
    row("libraries", "fft2 64 x 512 x 512", mine, other)


def decompositions() -> None:
    host = np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)
    x = mx.array(host)
    mx.eval(x)
    t = torch.from_numpy(host).cuda() if torch is not None else None
    half, thalf = (
        mx.contiguous(x[:512, :512]),
        t[:512, :512].contiguous() if t is not None else None,
    )
    spd = x @ x.T + 1024 * mx.eye(1024)
    mx.eval(half, spd)
    tspd = t @ t.T + 1024 * torch.eye(1024, device="cuda") if t is not None else None
    y, u = pair((1024, 16), seed=1)
    batch, tbatch = pair((256, 32, 32), seed=2)
    la, ta = mx.linalg, torch.linalg if torch is not None else None
    rows = [
        ("svd 512", lambda: la.svd(half)[1], lambda: ta.svd(thalf)),
        ("solve 1024 with 16", lambda: la.solve(x, y), lambda: ta.solve(t, u)),
        ("inverse 1024", lambda: la.inv(x), lambda: ta.inv(t)),
        ("cholesky 1024", lambda: la.cholesky(spd), lambda: ta.cholesky(tspd)),
        ("qr 1024", lambda: la.qr(x)[1], lambda: ta.qr(t)),
        ("eigh 512", lambda: la.eigh(spd[:512, :512])[0], lambda: ta.eigh(tspd[:512, :512])),
        ("eig 512", lambda: la.eig(half)[0], lambda: ta.eig(thalf)),
        ("inverse 256 x 32 x 32", lambda: la.inv(batch), lambda: ta.inv(tbatch)),
        ("svd 256 x 32 x 32", lambda: la.svd(batch)[1], lambda: ta.svd(tbatch)),
    ]
    for name, mine, other in rows:
        row("libraries", name, ours(mine), theirs(other))


def draws(rate: float) -> None:
    n = 1 << 26
    shape = (n,)
    like = torch.empty(n, device="cuda") if torch is not None else None
    normal, uniform = (lambda: mx.random.normal(shape)), (lambda: mx.random.uniform(shape=shape))
    row("libraries", "normals 2^26", ours(normal), theirs(lambda: like.normal_()), 4 * n / rate)
    row("libraries", "uniforms 2^26", ours(uniform), theirs(lambda: like.uniform_()), 4 * n / rate)
    key = mx.random.key(0)
    of_key = mx.compile(lambda key: mx.random.normal(shape, key=key))
    name = "normals 2^26, compiled"
    row("libraries", name, ours(lambda: of_key(key)), theirs(lambda: like.normal_()), 4 * n / rate)
    bits = mx.random.bits
    row(
        "libraries",
        "random bits 2^26",
        ours(lambda: bits(shape)),
        theirs(lambda: like.uniform_()),
        4 * n / rate,
    )


def libraries(rate: float) -> None:
    transforms(rate)
    draws(rate)
    decompositions()

"""A small transformer: its layers quantised, its weights in a file and back."""

import tempfile
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten


class Model(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.TransformerEncoder(2, width, 4, mlp_dims=128, norm_first=True)
        self.norm = nn.RMSNorm(width)

    def __call__(self, x: mx.array) -> mx.array:
        mask = nn.MultiHeadAttention.create_additive_causal_mask(x.shape[1])
        return self.embedding.as_linear(self.norm(self.encoder(self.embedding(x), mask)))


def main() -> None:
    mx.random.seed(2)
    model = Model(64, 64)
    x = mx.random.randint(0, 64, (2, 9))
    whole = model(x)
    print("logits", whole.shape, whole.sum().item(), whole[0, -1, :4].tolist())
    loss = lambda model: nn.losses.cross_entropy(model(x[:, :-1]), x[:, 1:], reduction="mean")
    value, grads = nn.value_and_grad(model, loss)(model)
    print("loss", value.item(), sum(mx.square(g).sum().item() for _, g in tree_flatten(grads)))
    for bits in (8, 4):
        quantized = Model(64, 64)
        quantized.update(model.parameters())
        nn.quantize(quantized, group_size=32, bits=bits)
        kinds = [type(m).__name__ for _, m in quantized.named_modules()]
        print("quantized", bits, kinds.count("QuantizedLinear"), kinds.count("QuantizedEmbedding"))
        part = quantized(x)
        print("distance", mx.abs(part - whole).mean().item(), part[0, -1, :4].tolist())
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "weights.safetensors")
            quantized.save_weights(file)
            again = Model(64, 64)
            nn.quantize(again, group_size=32, bits=bits)
            again.load_weights(file)
        print("same", mx.array_equal(again(x), part).item())
        names = [name for name, _ in tree_flatten(quantized.parameters())]
        print("names", len(names), *names[:6])


if __name__ == "__main__":
    main()

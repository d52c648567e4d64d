"""The examples of models: text.py learns and writes, generate.py computes what its model says, lora.py trains adapters.

Models are tiny and random; the tests write their folders.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import ROOT

import ultramarine as mx
from ultramarine.utils import tree_flatten

from . import llamas
from .children import output, python

EXAMPLES = ROOT / "examples"
MODULES = ("text", "llama", "tokenizer", "generate", "lora")


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skips a test where a package is missing, and says which."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module", autouse=True)
def path() -> Iterator[None]:
    """Examples are imported as they import each other; their names are free again afterwards."""
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def module(name: str) -> Any:
    return importlib.import_module(name)


# --- text.py ---


@needs("tqdm")
def test_text_learns(tmp_path: Path) -> None:
    printed = output(str(EXAMPLES / "text.py"), "--seconds", "3", "--out", str(tmp_path))
    number = r"([\d.]+)"
    found = re.search(
        rf"Held-out loss: {number} bits a character\. Guessing by frequency takes {number}, "
        rf"all characters alike {number}\.",
        printed,
    )
    assert found
    loss, unigram, uniform = (float(group) for group in found.groups())
    assert loss < unigram < uniform
    assert re.search(rf"in {number} s, {number} steps a second", printed)
    assert len(re.findall(r"^  (?:LOVE|COMPUTER|WISDOM), n\.", printed, re.MULTILINE)) == 3
    assert (tmp_path / "text.safetensors").is_file()


@needs("tqdm")
def test_text_without_time_fails(tmp_path: Path) -> None:
    ended = python(str(EXAMPLES / "text.py"), "--seconds", "0.01", "--out", str(tmp_path))
    assert ended.status == 1
    assert ended.err.endswith("That is no better than frequencies of characters.\n")


@needs("tqdm")
def test_text_guesses() -> None:
    """The levels in the picture, counted one character at a time."""
    corpus = module("text").read_text()
    assert len(corpus.held_out) > 20_000 and len(corpus.train) > 200_000
    counts = dict.fromkeys(range(len(corpus.characters)), 1)
    for i in corpus.train.tolist():
        counts[i] += 1
    total = sum(counts.values())
    bits = [-np.log2(counts[i] / total) for i in corpus.held_out.tolist()]
    uniform, unigram = corpus.guesses()
    assert abs(unigram - np.mean(bits)) < 1e-9
    assert abs(2**uniform - len(corpus.characters)) < 1e-9
    assert corpus.decode(corpus.encode("LOVE, n. A").tolist()) == "LOVE, n. A"


@needs("tqdm")
def test_text_writes_what_the_model_says() -> None:
    """With its cache, the characters that it would choose without."""
    text = module("text")
    mx.random.seed(3)
    model = text.Writer(40)
    for block in model.blocks:
        block.attention.out.weight = mx.random.normal((text.DIMS, text.DIMS)) * 0.1
        block.down.weight = mx.random.normal((text.DIMS, 4 * text.DIMS)) * 0.1
    # A temperature of about 0 draws the best; 0 ends a line, and is made unlikely.
    model.out.bias = mx.array([-100.0] + [0.0] * 39)
    numbers = text.write(model, np.array([5, 6, 7], np.int32), text.CONTEXT, 1e-6)
    assert len(numbers) == text.CONTEXT and len(set(numbers)) > 3
    best = mx.argmax(model(mx.array(numbers)[None])[0], axis=-1).tolist()
    assert numbers[3:] == best[2:-1]

    cache = text.Cache()
    keys = mx.random.normal((1, 1, text.CONTEXT + 9, 2))
    for i in range(keys.shape[2]):
        kept, _ = cache.update(keys[:, :, i : i + 1], keys[:, :, i : i + 1])
    assert mx.array_equal(kept, keys[:, :, 9:])


# --- llama.py and generate.py ---

VARIANTS: dict[str, dict[str, Any]] = {
    "tied": {},
    "own head": {"tie_word_embeddings": False, "num_key_value_heads": 4},
    "llama3": {"rope_scaling": llamas.LLAMA3},
    "head size": {"head_dim": 32, "num_key_value_heads": 1},
}


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts in several parts, and caches that grow often."""
    monkeypatch.setattr(module("llama"), "PREFILL", 5)
    monkeypatch.setattr(module("llama").Cache, "STEP", 8)


def recomputed(model: Any, prompt: list[int], count: int) -> list[int]:
    """The best tokens, each from all before it."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(mx.argmax(model(mx.array(tokens)[None])[0, -1]).item()))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("variant", VARIANTS)
def test_llama(variant: str, tmp_path: Path, small_steps: None) -> None:
    llama = module("llama")
    config = llamas.CONFIG | VARIANTS[variant]
    weights = llamas.weights(config)
    model = llama.load(llamas.write(tmp_path / "one", config, weights))
    prompt = [3, 14, 15, 9, 26, 5, 35, 8, 9, 7, 9, 3]
    got = np.array(model(mx.array(prompt)[None])[0])
    np.testing.assert_allclose(got, llamas.logits(config, weights, prompt), atol=2e-5, rtol=1e-4)
    tokens = list(llama.generate(model, prompt, 30))
    assert tokens == recomputed(model, prompt, 30)
    assert len(set(tokens)) > 2
    assert list(llama.generate(model, prompt, 1)) == tokens[:1]

    sharded = llama.load(llamas.write(tmp_path / "three", config, weights, shards=3))
    assert mx.array_equal(sharded(mx.array([prompt])), model(mx.array([prompt])))


def test_rope_parameters_of_transformers_5(tmp_path: Path) -> None:
    """One object has all of rope's parameters, theta too."""
    llama = module("llama")
    old = llamas.CONFIG | {"rope_theta": 500.0, "rope_scaling": llamas.LLAMA3}
    new = {k: v for k, v in llamas.CONFIG.items() if k != "rope_theta"}
    new |= {"rope_parameters": llamas.LLAMA3 | {"rope_theta": 500.0}}
    found = []
    for name, config in (("old", old), ("new", new)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
        found.append(1 / np.array(llama.wavelengths(llama.Config.read(tmp_path / name))))
    assert (found[0] == found[1]).all()
    np.testing.assert_allclose(found[0], llamas.frequencies(old), rtol=1e-5)


@pytest.mark.parametrize("bits", [8, 4])
def test_llama_of_few_bits(bits: int, tmp_path: Path, small_steps: None) -> None:
    llama = module("llama")
    weights = llamas.weights(llamas.CONFIG)
    model = llama.load(llamas.write(tmp_path / "model", llamas.CONFIG, weights), bits)
    prompt = [3, 14, 15, 9, 26, 5]
    got = np.array(model(mx.array([prompt]))[0])
    rounded = dict(weights)
    for name, value in weights.items():
        if value.ndim == 2:
            parts = mx.quantize(mx.array(value), 64, bits)
            rounded[name] = np.array(mx.dequantize(*parts, 64, bits))
    want = llamas.logits(llamas.CONFIG, rounded, prompt)
    np.testing.assert_allclose(got, want, atol=1e-4, rtol=1e-4)
    assert np.abs(want - llamas.logits(llamas.CONFIG, weights, prompt)).max() > 0.02
    assert list(llama.generate(model, prompt, 12)) == recomputed(model, prompt, 12)

    # A folder that is quantised already says so.
    config = llamas.CONFIG | {"quantization": {"group_size": 64, "bits": bits}}
    held = tmp_path / "quantised"
    held.mkdir()
    (held / "config.json").write_text(json.dumps(config))
    model.save_weights(str(held / "model.safetensors"))
    assert mx.array_equal(llama.load(held)(mx.array([prompt])), model(mx.array([prompt])))


def test_samples_follow_the_probabilities() -> None:
    llama = module("llama")
    mx.random.seed(5)
    logits = mx.log(mx.array([0.1, 0.6, 0.3]))
    drawn = llama.sample(mx.broadcast_to(logits, (20_000, 3)), 1.0)
    shares = np.bincount(np.array(drawn), minlength=3) / 20_000
    np.testing.assert_allclose(shares, [0.1, 0.6, 0.3], atol=0.02)
    assert llama.sample(logits[None], 0.0).tolist() == [1]
    assert set(llama.sample(mx.broadcast_to(logits, (1000, 3)), 0.02).tolist()) == {1}


BAD: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "no folder": ("is no folder", lambda folder: folder.rename(folder.with_name("away"))),
    "no config": ("config.json is missing", lambda folder: (folder / "config.json").unlink()),
    "no JSON": ("is no JSON", lambda folder: (folder / "config.json").write_text("{")),
    "another type": ("type 'gpt2'", lambda folder: change(folder, model_type="gpt2")),
    "a missing key": ("lacks the key 'vocab_size'", lambda folder: change(folder, vocab_size=None)),
    "another size": ("do not fit", lambda folder: change(folder, intermediate_size=96)),
    "more layers": ("do not fit", lambda folder: change(folder, num_hidden_layers=3)),
    "unknown rope": (
        "'yarn' is not supported",
        lambda folder: change(folder, rope_scaling={"rope_type": "yarn"}),
    ),
    "half of rope": (
        "lack 'factor'",
        lambda folder: change(folder, rope_scaling={"rope_type": "linear"}),
    ),
    "no weights": ("has no *.safetensors", lambda folder: remove(folder, "*.safetensors*")),
    "a missing shard": ("lacks model-00002", lambda folder: remove(folder, "*-00002-*")),
    "a broken file": ("model-00001", lambda folder: cut(folder)),
}


def change(folder: Path, **keys: Any) -> None:
    config = llamas.CONFIG | keys
    kept = {name: value for name, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))


def remove(folder: Path, pattern: str) -> None:
    for file in folder.glob(pattern):
        file.unlink()


def cut(folder: Path) -> None:
    file = folder / "model-00001-of-00002.safetensors"
    file.write_bytes(file.read_bytes()[:1000])


@pytest.mark.parametrize("what", BAD)
def test_folders_that_do_not_fit(what: str, tmp_path: Path) -> None:
    llama = module("llama")
    weights = llamas.weights(llamas.CONFIG)
    folder = llamas.write(tmp_path / "model", llamas.CONFIG, weights, shards=2)
    expected, spoil = BAD[what]
    spoil(folder)
    with pytest.raises(llama.ModelError, match=re.escape(expected)):
        llama.load(folder)


def test_generate_says_what_is_wrong(tmp_path: Path) -> None:
    """One line, and no traceback, with or without the packages."""
    ended = python(str(EXAMPLES / "generate.py"), "--model", str(tmp_path))
    assert ended.status == 1
    assert re.fullmatch(r"generate\.py: .* (is missing|needs a package)\..*\n", ended.err)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with a tokenizer."""
    made = llamas.write(tmp_path / "model", llamas.CONFIG, llamas.weights(llamas.CONFIG))
    llamas.write_tokenizer(made, importlib.import_module("tokenizers"))
    return made


@needs("tokenizers", "jinja2")
def test_generate(folder: Path) -> None:
    tokenizer = module("tokenizer").Tokenizer(folder)
    model = module("llama").load(folder)
    program = (str(EXAMPLES / "generate.py"), "--model", str(folder), "--max-tokens", "25")

    def expected(prompt: list[int]) -> str:
        tokens = recomputed(model, prompt, 25)
        return str(tokenizer.decode(list(itertools.takewhile(lambda t: t != 1, tokens))))

    raw = tokenizer.encode("Once upon a time")
    assert len(raw) == 16
    ended = python(*program, "--raw", "--prompt", "Once upon a time")
    assert ended.status == 0, ended.err
    assert ended.out == expected(raw) + "\n"
    rate = r"[\d.]+ a second"
    assert re.fullmatch(
        rf"Prompt: 16 tokens, {rate}\. Generation: \d+ tokens, {rate}\.\n", ended.err
    )

    chat = tokenizer.encode(f"user: Why?{llamas.STOP}assistant: ")
    assert tokenizer.conversation([{"role": "user", "content": "Why?"}]) == chat
    assert 1 in chat and tokenizer.stops == {1}
    assert output(*program, "--prompt", "Why?") == expected(chat) + "\n"


# --- lora.py ---


def tiny(tmp_path: Path, bits: int | None = None) -> Any:
    folder = llamas.write(tmp_path / "tiny", llamas.CONFIG, llamas.weights(llamas.CONFIG))
    return module("llama").load(folder, bits)


@pytest.mark.parametrize("bits", [None, 8])
def test_adapters_learn(bits: int | None, tmp_path: Path) -> None:
    lora = module("lora")
    mx.random.seed(1)
    model = tiny(tmp_path, bits)
    pairs = [([5 + i, 9, 12], [20 + i, 21, 1]) for i in range(8)]
    tokens, mask = lora.tabulate([*pairs, ([4], [3])])
    assert tokens.shape == mask.shape == (9, 6)
    assert tokens[8].tolist() == [4, 3, 0, 0, 0, 0] and mask[8].tolist() == [0, 1, 0, 0, 0, 0]

    plain = model(tokens)
    frozen = dict(tree_flatten(model.parameters()))
    lora.adapt(model, 2, 4, 2.0)
    trainable = dict(tree_flatten(model.trainable_parameters()))
    assert len(trainable) == 2 * 2 * len(lora.PLACES)
    assert all(".lora_" in name for name in trainable)
    assert mx.array_equal(model(tokens), plain)

    losses: list[float] = []
    lora.train(model, tokens, mask, 40, 4, 1e-2, lambda _, value: losses.append(value))
    assert len(losses) == 40 and losses[-1] < losses[0] / 4
    assert lora.loss(model, tokens, mask).item() < losses[0] / 4
    for name, value in tree_flatten(model.parameters()):
        if ".lora_" not in name:
            assert mx.array_equal(value, frozen[name.replace(".linear", "")]), name

    file = tmp_path / "out" / "adapters.safetensors"
    lora.save(model, file, 2, 4, 2.0)
    assert set(mx.load(str(file))) == set(trainable)
    again = tiny(tmp_path / "again", bits)
    lora.load(again, file)
    assert mx.array_equal(again(tokens), model(tokens))


def test_loss_counts_answers_alone(tmp_path: Path) -> None:
    """One token at a time: the logarithm of its probability, if it is an answer's."""
    lora = module("lora")
    model = tiny(tmp_path)
    pairs = [([5, 9, 12], [20, 1]), ([7], [30, 31, 1])]
    tokens, mask = lora.tabulate(pairs)
    each = []
    for prompt, answer in pairs:
        scores = np.array(model(mx.array([prompt + answer]))[0], np.float64)
        for i, token in enumerate(answer, len(prompt) - 1):
            each.append(np.log(np.exp(scores[i]).sum()) - scores[i, token])
    assert abs(lora.loss(model, tokens, mask).item() - np.mean(each)) < 1e-5


def test_adapters_that_do_not_fit(tmp_path: Path) -> None:
    lora, llama = module("lora"), module("llama")
    model = tiny(tmp_path)
    with pytest.raises(llama.ModelError, match=r"no file that lora\.py wrote"):
        lora.load(model, tmp_path / "nothing.safetensors")
    with pytest.raises(llama.ModelError, match=r"no file that lora\.py wrote"):
        lora.load(model, tmp_path / "tiny" / "model.safetensors")
    lora.adapt(model, 1, 2, 1.0)
    lora.save(model, tmp_path / "a.safetensors", 1, 2, 1.0)
    config = llamas.CONFIG | {"intermediate_size": 192}
    other = llama.load(llamas.write(tmp_path / "other", config, llamas.weights(config)))
    with pytest.raises(llama.ModelError, match="another model's"):
        lora.load(other, tmp_path / "a.safetensors")


@needs("tokenizers", "jinja2")
def test_lora(folder: Path, tmp_path: Path) -> None:
    """The whole program, with data that has one answer."""
    data, adapters = tmp_path / "data.jsonl", tmp_path / "a.safetensors"
    lines = []
    for question in ("Why?", "When?", "What is the sun?"):
        turns = (("user", question), ("assistant", "Yes!"))
        lines.append({"messages": [{"role": role, "content": text} for role, text in turns]})
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = ("--model", str(folder))
    printed = output(
        str(EXAMPLES / "lora.py"),
        *model,
        *("--data", str(data), "--out", str(adapters)),
        *("--iterations", "60", "--rate", "1e-2", "--layers", "2"),
    )
    losses = re.findall(r"^iteration +\d+: loss ([\d.]+)$", printed, re.MULTILINE)
    assert len(losses) == 60 and float(losses[-1]) < float(losses[0]) / 4
    assert "What is the sun?\n" in printed and "  after:  Yes!\n" in printed
    asked = ("--prompt", "What is the sun?", "--adapter", str(adapters))
    assert output(str(EXAMPLES / "generate.py"), *model, *asked) == "Yes!\n"


def test_pirate_data() -> None:
    lora = module("lora")
    found = lora.read(EXAMPLES / "data" / "pirate.jsonl")
    assert len(found) == 36
    for messages in found:
        assert [m["role"] for m in messages] == ["user", "assistant"]
        assert re.fullmatch(r"Arr! .*, me hearty!", messages[1]["content"])
        assert messages[0]["content"] not in lora.QUESTIONS

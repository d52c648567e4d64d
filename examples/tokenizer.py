"""Text and tokens, as generate.py and lora.py use them: a folder's `tokenizer.json` and chat template."""

from __future__ import annotations

import datetime
import importlib
from pathlib import Path
from typing import Any

from llama import ModelError, read_json


def needed(package: str, why: str) -> Any:
    """A module that not everybody has.

    Raises:
        ModelError: It is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ModelError(f"{why} needs a package. Install `{package}`.") from error


class Tokenizer:
    """A folder's tokenizer.

    Attributes:
        stops (set): Tokens that end an answer.
        template (str | None): The chat template, in Jinja's language.

    Args:
        folder (Path): Contains `tokenizer.json`; `tokenizer_config.json`, `generation_config.json` and
            `chat_template.jinja` are read where they are there.

    Raises:
        ModelError: A file is missing or damaged, or the package `tokenizers` is not installed.
    """

    def __init__(self, folder: Path) -> None:
        library = needed("tokenizers", f"{folder / 'tokenizer.json'}")
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise ModelError(f"{path} is missing. Pass a folder with a tokenizer of this format.")
        try:
            self.tokenizer: Any = library.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises this class itself
            raise ModelError(f"{path}: {error}.") from error
        self.streams: Any = library.decoders.DecodeStream
        optional = [
            read_json(folder / name) if (folder / name).is_file() else {}
            for name in ("config.json", "generation_config.json", "tokenizer_config.json")
        ]
        self.stops: set[int] = set()
        for found in optional[:2]:
            end = found.get("eos_token_id")
            self.stops |= {
                int(i) for i in (end if isinstance(end, list) else [end]) if i is not None
            }
        self.special: dict[str, str] = {}
        for key, token in optional[2].items():
            if key.endswith("_token") and token:
                self.special[key] = token["content"] if isinstance(token, dict) else str(token)
        self.template: str | None = optional[2].get("chat_template")
        if isinstance(self.template, list):
            named = {entry["name"]: entry["template"] for entry in self.template}
            self.template = named.get("default")
        if (folder / "chat_template.jinja").is_file():
            self.template = (folder / "chat_template.jinja").read_text(encoding="utf-8")

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, with those that the tokenizer puts around it."""
        return list(self.tokenizer.encode(text).ids)

    def decode(self, tokens: list[int]) -> str:
        """The text of tokens, without special ones."""
        return str(self.tokenizer.decode(tokens))

    def stream(self) -> Any:
        """A function of the next token that returns the text that it completes, often none."""
        state = self.streams(skip_special_tokens=True)
        return lambda token: state.step(self.tokenizer, token) or ""

    def conversation(self, messages: list[dict[str, str]], answer_next: bool = True) -> list[int]:
        """Tokens of a conversation.

        Args:
            messages (list): Dictionaries of `role`, which is "user" or "assistant", and `content`.
            answer_next (bool): Ends with what an answer begins with.

        Raises:
            ModelError: There is no template, it refuses the messages, or `jinja2` is not installed.
        """
        if self.template is None:
            raise ModelError("The folder has no chat template. Pass --raw to continue a text.")
        needed("jinja2", "A chat template")
        sandbox = importlib.import_module("jinja2.sandbox")
        settings = {"trim_blocks": True, "lstrip_blocks": True}
        environment = sandbox.ImmutableSandboxedEnvironment(
            **settings, extensions=["jinja2.ext.loopcontrols"]
        )

        def refuse(message: str) -> None:
            raise ModelError(f"The chat template refuses the messages: {message}")

        environment.globals |= {
            "raise_exception": refuse,
            "strftime_now": lambda form: datetime.datetime.now().strftime(form),
        }
        text = environment.from_string(self.template).render(
            messages=messages, add_generation_prompt=answer_next, **self.special
        )
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

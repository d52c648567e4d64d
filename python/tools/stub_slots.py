"""Signatures of the special methods that are slots, of which the module has none, and of attributes that can be set."""

from __future__ import annotations

OPERATORS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]
COMPARISONS = ["lt", "le", "gt", "ge"]
SLOTS = {
    "array": [
        *(f"def __{r}{op}__(self, other: ArrayLike) -> array: ..." for op in OPERATORS
          for r in ("", "r", "i")),
        *(f"def __{op}__(self, other: ArrayLike) -> array: ..." for op in COMPARISONS),
        *(f"def __{op}__(self, other: object) -> array: ...  # type: ignore[override]"
          for op in ("eq", "ne")),
        *(f"def __{r}matmul__(self, other: array | Foreign) -> array: ..." for r in ("", "r", "i")),
        "__array_priority__: float",
        *(f"def __{r}divmod__(self, other: ArrayLike) -> tuple[array, array]: ..."
          for r in ("", "r")),
        *(f"def __{op}__(self) -> array: ..." for op in ("neg", "pos", "abs", "invert")),
        "def __getitem__(self, arg: Any, /) -> array: ...",
        "def __setitem__(self, arg0: Any, arg1: ArrayLike, /) -> None: ...",
        "def __len__(self) -> int: ...",
        "def __iter__(self) -> Iterator[array]: ...",
        *(f"def __{t}__(self) -> {t}: ..." for t in ("bool", "int", "float", "complex")),
        "def __index__(self) -> int: ...",
        "def __bytes__(self) -> bytes: ...",
        "def __hash__(self) -> int: ...",
        "def __format__(self, spec: str, /) -> str: ...",
        "def __copy__(self) -> array: ...",
        "def __deepcopy__(self, memo: Any, /) -> array: ...",
        "def __buffer__(self, flags: int, /) -> memoryview: ...",
    ],
    "ArrayAt": ["def __getitem__(self, indices: Any) -> ArrayAt: ..."],
    "ArrayIterator": [
        "def __iter__(self) -> ArrayIterator: ...",
        "def __next__(self) -> array: ...",
    ],
    "FunctionExporter": [
        "def __call__(self, *args: Any, **kwargs: array) -> None: ...",
        "def __enter__(self) -> FunctionExporter: ...",
        "def __exit__(self, exc_type: object = None, exc_value: object = None, traceback: object = None) -> None: ...",
    ],
    "StreamContext": [
        "def __enter__(self) -> None: ...",
        "def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) "
        "-> None: ...",
    ],
    "PrecisionContext": [
        "def __enter__(self) -> None: ...",
        "def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) "
        "-> None: ...",
    ],
    "DeterministicContext": [
        "def __enter__(self) -> None: ...",
        "def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) "
        "-> None: ...",
    ],
    "TransferContext": [
        "def __enter__(self) -> None: ...",
        "def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) "
        "-> None: ...",
    ],
    "Profile": [
        "def __enter__(self) -> Profile: ...",
        "def __exit__(self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None) "
        "-> None: ...",
    ],
    "_PrintOptionsContext": [
        "def __enter__(self) -> _PrintOptionsContext: ...",
        "def __exit__(self, *args: Any) -> None: ...",
    ],
    "PrintOptions": ["precision: int"],
    "DeviceType": ["def __call__(self, index: int = 0) -> Device: ..."],
    "CustomKernel": [
        "def __call__(self, *, inputs: Sequence[ArrayLike], output_shapes: Sequence[Sequence[int]], "
        "output_dtypes: Sequence[Dtype], grid: tuple[int, int, int], threadgroup: tuple[int, int, int], "
        "template: Sequence[tuple[str, Dtype | int | bool]] | None = None, init_value: float | None = None, "
        "verbose: bool = False, stream: StreamOrDevice = None) -> list[array]: ...",
    ],
    "ForeignKernel": [
        "def __call__(self, *, inputs: Sequence[ArrayLike], output_shapes: Sequence[Sequence[int]], "
        "output_dtypes: Sequence[Dtype], init_value: float | None = None, "
        "stream: StreamOrDevice = None) -> list[array]: ...",
    ],
    "custom_function": [
        "def __init__(self, f: Callable[..., Any]) -> None: ...",
        "def __call__(self, *args: Any, **kwargs: Any) -> Any: ...",
        "@property\n    def __wrapped__(self) -> Callable[..., Any]: ...",
    ],
}  # fmt: skip

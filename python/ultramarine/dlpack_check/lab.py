"""The native half: fabricated tensors, and a consumer that looks at everything (see lab.pyi)."""

from ultramarine import _core

_lab = getattr(_core, "_dlpack_lab", None)
if _lab is None:
    raise ImportError("ultramarine.dlpack_check needs a system with POSIX memory mappings")

Memory = _lab.Memory
Table = _lab.Table
Taken = _lab.Taken
Tensor = _lab.Tensor
drop_pending = _lab.drop_pending
inspect = _lab.inspect
make_table = _lab.make_table
table = _lab.table
table_calls = _lab.table_calls
take = _lab.take

"""The table of transforms/test_rules.py: examples for the transforms of every public function.

Each module here covers a family of operations. It has

- `CASES`, a list of `case(name, function, *operands)`. `name` is the function's, with its module
  (`"sort"`, `"linalg.svd"`), and behind a comma whatever tells two cases of one function apart
  (`"sort, second axis"`). `function` takes the library (`um`) and an array for each operand; it returns an array
  or a list or tuple of arrays. Operands are made by `real`, `whole` and `truth` (see `case.py`), small and away from
  where the function is not smooth.
- `EXEMPT`, a dictionary of names that need no case, each with the reason.

`case` checks derivatives in float64 against central differences, and batching against a loop. Of functions without
a derivative (or whose derivative is zero almost everywhere) say `flat(...)` instead: batching only. Functions that
have float32 kernels only: `single=True`. Complex results are taken apart by `case.parts`.

Every name in `dir()` of the package and of its modules of functions has to be in a table: a new function without
an entry fails `test_every_function_is_there`. A new module of functions is added to `MODULES` there.
"""

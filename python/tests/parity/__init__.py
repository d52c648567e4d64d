"""Generated cases: calls as text, run with mlx.core and with ultramarine on the same data.

`python -m parity` (in python/tests) runs them; test_parity.py runs a sample in pytest, and
python/tools/parity_page.py writes docs/parity.md from the whole.
"""

"""The conformance kit of Ultramarine: the program is in `bin`, and `python -m ultramarine conform FILE` runs it."""

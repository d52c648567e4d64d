"""Parts of `ultramarine.backends`."""

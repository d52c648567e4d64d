"""`python -m ultramarine.as_mlx PROGRAM [ARGUMENT ...]`: see `ultramarine.as_mlx`."""

from ultramarine.as_mlx._run import main

main()

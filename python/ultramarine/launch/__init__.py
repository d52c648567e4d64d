"""`python -m ultramarine.launch -n 2 program.py`: a program as several processes, on one host or over ssh on several.

`rank` runs one rank's program, `options` has the command line, `jobs` starts the ranks by mpirun or by itself.
"""

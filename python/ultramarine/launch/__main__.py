"""The command `python -m ultramarine.launch`."""

import sys

from .jobs import run
from .options import LaunchError, parse
from .rank import say


def main(arguments: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    try:
        return run(parse(arguments))
    except LaunchError as error:
        say(str(error))
        return 2


if __name__ == "__main__":
    sys.exit(main())

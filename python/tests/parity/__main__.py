"""`python -m parity [CASES [NAME]]`, or `python -m parity one NAME INDEX`."""

import sys

from .running import main

sys.exit(main(sys.argv[1:]))

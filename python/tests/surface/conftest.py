"""The tests import the tool that makes the stubs."""

import sys

from support.paths import TOOLS

sys.path.insert(0, str(TOOLS))

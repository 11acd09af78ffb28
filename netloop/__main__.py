"""``python -m netloop``."""

import sys

from netloop.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())

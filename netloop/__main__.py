"""``python -m netloop``."""

import sys

from netloop.cli import main

if __name__ == "__main__":
    sys.exit(main())

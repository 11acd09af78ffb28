"""``python -m netloop.compat SCRIPT``: run a TensorRT script or notebook without a GPU."""

import sys

from netloop.tools.compat.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

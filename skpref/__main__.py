"""The command `skpref` as `python -m skpref`."""

import sys

from skpref._command import main

if __name__ == "__main__":
    sys.exit(main())

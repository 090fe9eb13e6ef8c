"""`python -m minicpm5_mac` is the same command as `minicpm5-mac`."""

import sys

from minicpm5_mac.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m keras_dreamer_cli` is `keras-dreamer`."""

import sys

from keras_dreamer_cli.main import main

if __name__ == "__main__":
    sys.exit(main())

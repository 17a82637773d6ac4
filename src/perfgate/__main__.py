"""``python -m perfgate``."""

import sys

from perfgate.cli import main

sys.exit(main())

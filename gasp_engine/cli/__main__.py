"""`python -m gasp_engine.cli`."""

import sys

from . import main

sys.exit(main())

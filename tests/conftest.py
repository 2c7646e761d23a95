"""What holds for every test."""

import os
import signal

from hypothesis import settings

# The same examples in every run, so that the suite is green or red for a reason; `make chaos` looks for new ones.
settings.register_profile("pravda", derandomize="PRAVDA_CHAOS" not in os.environ, deadline=None)
settings.load_profile("pravda")

# A shell starts what it puts in the background with Ctrl-C ignored, and children inherit that: those that the tests
# interrupt would not hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

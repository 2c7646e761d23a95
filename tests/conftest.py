"""What holds for every test."""

import signal

# A shell starts what it puts in the background with Ctrl-C ignored, and children inherit that: those that the tests
# interrupt would not hear of it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

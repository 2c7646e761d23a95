"""The law: no I/O, no clock, no randomness; imports nothing of ours but itself."""

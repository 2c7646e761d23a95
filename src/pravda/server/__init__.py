"""Pravda as a service: the operations over HTTP."""

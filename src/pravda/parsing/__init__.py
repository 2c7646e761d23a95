"""Parsers over stored pages: run apart, cleaned, held to schemas and fixtures, built into one document. Never a request."""

"""What can be wrong with a query that a caller wants to have answered by a page."""


class BadQuery(ValueError):
    """A selector, path or pattern that cannot be taken; the message says what is wrong and what to write."""


class Unanswerable(ValueError):
    """A sound query that cannot be answered on this very page."""


def said(error: Exception) -> str:
    """Give a library's own words on one short line."""
    words = error.args[0] if error.args else ""
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
    return " ".join(text.split())[:200] or type(error).__name__

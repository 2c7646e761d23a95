"""The one way the law says that a caller asked for something impossible."""


class BadRequest(ValueError):
    """The caller's request cannot be taken; `field` names the part that is wrong. Nothing was fetched or stored."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type["BadRequest"], tuple[str, str]]:
        return type(self), (self.field, self.problem)


def shown(value: object) -> str:
    """A caller's value in a message: short, on one line, whatever it is."""
    try:
        return f"{value!r:.60}"
    except (ValueError, RecursionError):  # an integer of too many digits; a list nested too deep
        return f"this {type(value).__name__}"

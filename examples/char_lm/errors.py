"""The one kind of error that ends a rank with a sentence instead of a traceback."""


class CannotGoOnError(Exception):
    """Training cannot go on; the message names the thing and the next step."""

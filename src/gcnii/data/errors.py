"""What goes wrong with data, said in one sentence."""


class DataError(ValueError):
    """A data set cannot be had or read; the message says what was expected, what came and what to do."""

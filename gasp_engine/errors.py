"""Every error that the engine raises on purpose, in one tree under `GaspError`.

A message says what failed, what was given (cut), what was expected, and what to do about it.
"""


class GaspError(Exception):
    """Base of all errors raised by this project."""


class InputError(GaspError, ValueError):
    """A caller's input has a value that cannot be used."""


class InputTypeError(InputError, TypeError):
    """A caller's input has the wrong type; the message names the argument and the type."""


class ContextLengthError(GaspError, ValueError):
    """Text does not fit the scorer's window; the message gives both counts."""


class AlignmentError(GaspError):
    """Token offsets cannot be laid over the text that they were made from."""


class NumericalError(GaspError, ArithmeticError):
    """A scorer produced a value that is not finite; names token, condition and dtype."""


class NotFittedError(GaspError):
    """A detector or calibrator is used before it was fitted."""


class ModelLoadError(GaspError):
    """A model or model file cannot be loaded; names the path or package and the remedy."""


class BackendError(GaspError):
    """A remote scorer answered with something that cannot be used; names the backend."""


class DatasetError(GaspError, ValueError):
    """A data file is not of the expected form; names the file and the line."""


class LeakageError(GaspError):
    """Something that was fitted has seen the groups that it is tested on."""


class SessionError(GaspError):
    """A streaming session was used after it was closed, evicted or had failed."""


class MissingExtraError(GaspError, ImportError):
    """An optional dependency is not installed; the message holds the install command."""


def shorten(value: object, limit: int = 60) -> str:
    """`repr(value)`, cut to `limit` characters, for use in messages.

    >>> shorten("a" * 100, 10)
    "'aaaaaaaa…"
    """
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"

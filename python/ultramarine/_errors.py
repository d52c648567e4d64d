"""Exceptions that are several kinds of error at once."""


class InterchangeError(BufferError, ValueError):
    """Memory cannot be imported or exported as asked: a copy would be needed and was forbidden,
    no array can be that tensor, read-only memory in a form that cannot say so.

    Example:
        >>> issubclass(mx.InterchangeError, (BufferError, ValueError))
        True
    """

    __module__ = "ultramarine"


class InterchangeDeviceError(InterchangeError, TypeError):
    """Memory cannot be imported or exported because of the device that it is on.

    Example:
        >>> issubclass(mx.InterchangeDeviceError, mx.InterchangeError)
        True
    """

    __module__ = "ultramarine"

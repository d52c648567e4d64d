"""The type that annotations of MLX programs name."""


class ArrayLike:
    """Object that stands for an array: one with the method `__mlx_array__`, which returns an array.

    Functions take such objects wherever they take arrays. The class names them in annotations; as a call it wraps an
    object, of whatever class.

    Args:
        arg (object): Object to wrap, not None.

    Raises:
        TypeError: If `arg` is None.

    Example:
        >>> class Celsius:
        ...     def __init__(self, degrees):
        ...         self.degrees = degrees
        ...     def __mlx_array__(self):
        ...         return mx.array(self.degrees)
        >>> mx.add(Celsius([20.0, 25.0]), 273.15)
        array([293.15, 298.15], dtype=float32)
    """

    __module__ = "ultramarine"
    __slots__ = ("_wrapped",)

    def __init__(self, arg, /):
        if arg is None:
            raise TypeError("ArrayLike(): argument 'arg': expected an object, got None")
        self._wrapped = arg

    def __mlx_array__(self):
        """Returns the array that the wrapped object is or returns.

        Returns:
            array: The array.

        Raises:
            ValueError: If the object neither is an array nor returns one.
        """
        from ultramarine import _core

        if isinstance(self._wrapped, _core.array):
            return self._wrapped
        convert = getattr(self._wrapped, "__mlx_array__", None)
        if convert is None or isinstance(self._wrapped, ArrayLike):
            kind = type(self._wrapped).__name__
            raise ValueError(f"Invalid type {kind} received in array initialization.")
        return convert()

"""Arrays in `reprlib`, which takes any class that is called `array` for the standard library's."""

import array
import reprlib

_standard = reprlib.Repr.repr_array


def _repr_array(self, x, level):
    return _standard(self, x, level) if isinstance(x, array.array) else self.repr_instance(x, level)


# Setting it on the class also affects subclasses and existing instances.
reprlib.Repr.repr_array = _repr_array

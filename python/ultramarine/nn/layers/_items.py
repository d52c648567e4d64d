"""Items that are found as attributes, without the failed look-up that comes before `__getattr__`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class Items(dict[str, Any]):
    """A dictionary whose items that are such dictionaries themselves are attributes, too.

    A step of a language model asks for hundreds of submodules, and an attribute that is no ordinary one costs ten times
    as much as one that is: Python makes an error first, with its text. So submodules are in the object's `__dict__`
    beside its ordinary attributes. Arrays are not, since C code, which puts results of compiled functions into
    dictionaries, does not call these methods. An ordinary attribute, or one of the class, hides an item of its name.
    """

    def __setitem__(self, key: str, value: Any) -> None:
        shown = self._is_shown(key)
        if isinstance(value, Items) and (shown or not self._has_attribute(key)):
            self.__dict__[key] = value
        elif shown:
            del self.__dict__[key]
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        shown = self._is_shown(key)
        super().__delitem__(key)
        if shown:
            del self.__dict__[key]

    def pop(self, key: str, *default: Any) -> Any:
        """As of a dictionary."""
        if self._is_shown(key):
            del self.__dict__[key]
        return super().pop(key, *default)

    def popitem(self) -> tuple[str, Any]:
        """As of a dictionary."""
        for key in reversed(self):
            return key, self.pop(key)
        return super().popitem()

    def clear(self) -> None:
        """As of a dictionary."""
        for key in list(self):
            del self[key]

    def setdefault(self, key: str, default: Any = None) -> Any:
        """As of a dictionary."""
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, other: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Items:  # type: ignore[override, misc]
        for key, value in dict(other).items():
            self[key] = value
        return self

    def _is_shown(self, key: str) -> bool:
        """Returns True if an item is in the object's `__dict__`."""
        value = self.get(key)
        return value is not None and self.__dict__.get(key) is value

    def _has_attribute(self, key: str) -> bool:
        return key in self.__dict__ or hasattr(type(self), key)

"""Directories of backends that installed packages declare, and the command that tries a file. The core asks for both."""

import os

# The entry point group in which packages declare directories with backends.
_GROUP = "ultramarine.backends"


def package_directories():
    """Lists the directories that installed packages declare, each with the name of its package.

    The core calls it before its first load. A broken entry is warned of and does not affect the others.
    """
    from importlib.metadata import distributions

    # Look at all distributions, not only at the first of each name. In a package's source directory, leftover build
    # metadata comes before the installed package's metadata, and contains no library.
    points = {}
    try:
        for distribution in distributions():
            for point in distribution.entry_points:
                if point.group == _GROUP:
                    places = points.setdefault((point.name, point.value), [])
                    places.append((point, distribution))
    except Exception as error:
        _warn(f"the entry points of installed packages cannot be read: {error}")
    found = []
    for (name, _), places in sorted(points.items()):
        package = places[0][1].metadata["Name"] or name
        try:
            found += [(path, package) for path in _declared(places)]
        except Exception as error:
            _warn(f"the entry point {name!r} of {package} cannot be followed: {error}")
    return found


def _declared(places):
    """The directories of an entry point that distributions declare: beside their files, or else where Python finds the
    module, which in an editable installation is elsewhere."""
    for point, distribution in places:
        path = os.path.join(distribution.locate_file(""), *point.module.split("."), "backends")
        if os.path.isdir(path):
            return [os.path.abspath(path)]
    return _directories(places[0][0].module)


def _warn(text):
    import warnings

    warnings.warn(text, RuntimeWarning, stacklevel=3)


def _directories(module):
    """The directories of a package's or module's backends, found without running any of it."""
    from importlib.util import find_spec

    # Looking up a dotted name would import the packages before the dot.
    top, *rest = module.split(".")
    spec = find_spec(top)
    if spec is None:
        raise ModuleNotFoundError(f"there is no module {top!r}")
    places = spec.submodule_search_locations
    if places is None:
        places = [os.path.dirname(spec.origin)]
    return [os.path.abspath(os.path.join(place, *rest, "backends")) for place in places]


def probe_command():
    """The command that tries a file, named behind it, in a child process: this interpreter, if it is one."""
    import sys

    if not sys.executable:
        return None
    place = os.path.abspath(__file__)
    for _ in range(3):
        place = os.path.dirname(place)
    code = f"import sys; sys.path.insert(0, {place!r}); from ultramarine import _core; "
    return [sys.executable, "-c", code + "_core._probe(sys.argv[1])"]

"""`python -m ultramarine backends`: which backends were found, and why others were left out. `python -m ultramarine
profile script.py`: what a script evaluates, and how long that takes. `python -m ultramarine include`: the directory of
the C and C++ headers. `python -m ultramarine cmake`: the directory of CMake's package."""

import argparse
import sys

from ultramarine import backends

HELP = """\
Looks for backends as a program would, and shows each with its devices, or with the reason why it
was left out and what to do about it. With PATHs, tries these files, and the files in
these directories, instead."""


PROFILE = """\
Runs a Python script as `python SCRIPT` would, and prints what its evaluations ran: operations, tensors,
device, means, bytes and time. The table goes to standard error, so that the script's output stays its own."""


def main(arguments=None):
    """Runs the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ultramarine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "backends", description=HELP, help="show the backends and why others were left out"
    )
    command.add_argument("paths", nargs="*", metavar="PATH", help="a library, or a directory")
    command.add_argument("--json", action="store_true", help="the report as JSON")
    command.add_argument(
        "--all",
        action="store_true",
        help="load also what serves devices that another serves better",
    )
    command.add_argument(
        "--probe", action="store_true", default=None, help="try each in a child process first"
    )
    commands.add_parser("include", help="print the directory of the headers, for a compiler's -I")
    commands.add_parser("cmake", help="print CMake's Ultramarine_DIR, for find_package")
    command = commands.add_parser(
        "profile", description=PROFILE, help="run a script and show what it evaluated"
    )
    command.add_argument(
        "--trace", metavar="FILE", help="write a trace too, for ui.perfetto.dev or chrome://tracing"
    )
    command.add_argument("--limit", type=_count, default=40, help="most rows of the table (40)")
    command.add_argument("script", help="the script")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(arguments)
    if given.command == "profile":
        return _profile(given)
    if given.command == "include":
        print(backends.include_dir())
        return 0
    if given.command == "cmake":
        print(backends.cmake_dir())
        return 0
    failed = _load(given)
    print(backends.report_json() if given.json else _text())
    return 1 if failed else 0


def _count(text):
    """A number of rows."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows")
    return int(text)


def _profile(given):
    """Runs a script in a profile; what it raises, an exit too, is raised after the table."""
    import os
    import runpy

    from ultramarine import profile

    if not os.path.exists(given.script):
        print(f"python -m ultramarine profile: there is no {given.script}", file=sys.stderr)
        return 2
    # As for `python SCRIPT`: its arguments, and its directory before all others on the path.
    sys.argv = [given.script, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    recorded = profile()
    try:
        with recorded:
            runpy.run_path(given.script, run_name="__main__")
    finally:
        sys.stdout.flush()
        print(recorded.table(given.limit), end="", file=sys.stderr)
        if given.trace:
            recorded.save(given.trace)
    return 0


def _load(given):
    """Loads what was asked for; returns whether a file that was named did not load."""
    import os

    directories = [p for p in given.paths if os.path.isdir(p)]
    files = [p for p in given.paths if p not in directories]
    failed = False
    if directories or not files:
        if directories:
            backends.set_search_paths(directories)
        backends.load_all(duplicates=given.all, probe=given.probe)
    for path in files:
        try:
            backends.load(path)
        except (OSError, RuntimeError, ValueError):
            # The report says it.
            failed = True
    return failed


def _text():
    lines = ["Backends:"]
    for backend in backends.list():
        name = "-".join(filter(None, [backend.name, backend.variant]))
        place = backend.path or "built in"
        lines.append(f"  {name} {backend.version}".rstrip() + f"  ({place})")
        for device, description in zip(backend.devices, backend.descriptions):
            lines.append(f"    {device.type.name}:{device.index}  {description}")
    return "\n".join(lines) + "\n\n" + str(backends.report()).rstrip()


if __name__ == "__main__":
    sys.exit(main())

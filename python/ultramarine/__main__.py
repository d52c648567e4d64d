"""`python -m ultramarine backends`: which backends were found, and why others were left out. `python -m ultramarine
profile script.py`: what a script evaluates, and how long that takes. `python -m ultramarine include`: the directory of
the C and C++ headers. `python -m ultramarine cmake`: the directory of CMake's package. `python -m ultramarine conform
FILE`: whether a backend keeps the contract, by the kit of the package ultramarine-conform."""

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


CONFORM = """\
Checks from a backend's file alone that it keeps the contract, and reports what it can do. The arguments are those
of the program ultramarine-conform; `conform --help` prints them."""

NO_KIT = """\
python -m ultramarine conform: the kit is a program of its own, which is not installed.
Install the package ultramarine-conform (pip install ultramarine-conform), or set ULTRAMARINE_CONFORM to the program's path.
In a checkout of Ultramarine: cargo build --release -p ultramarine-conform"""


def main(arguments=None):
    """Runs the command; returns the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["conform"]:
        # The remaining options belong to the conformance program.
        return _conform(arguments[1:])
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
        "--probe",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="try each in a child process first, as libraries that are named are",
    )
    commands.add_parser("include", help="print the directory of the headers, for a compiler's -I")
    commands.add_parser("cmake", help="print CMake's Ultramarine_DIR, for find_package")
    commands.add_parser(
        "conform",
        description=CONFORM,
        help="check that a backend keeps the contract",
        add_help=False,
    )
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


def _conform(arguments):
    """Runs the conformance kit; returns its exit status."""
    import os
    import subprocess

    program = _kit()
    if program is None:
        print(NO_KIT, file=sys.stderr)
        return 2
    # The commands that it prints for a second run should use the command that the user called.
    environment = {**os.environ, "ULTRAMARINE_CONFORM_COMMAND": "python -m ultramarine conform"}
    return subprocess.run([program, *arguments], env=environment).returncode


def _kit():
    """Path of the conformance kit: what the environment names, the package's, or what the shell would find."""
    import os
    import shutil
    from importlib.util import find_spec

    if given := os.environ.get("ULTRAMARINE_CONFORM"):
        return given
    name = "ultramarine-conform" + (".exe" if os.name == "nt" else "")
    package = find_spec("ultramarine_conform")
    for place in (package and package.submodule_search_locations) or []:
        if os.path.isfile(path := os.path.join(place, "bin", name)):
            return path
    return shutil.which(name)


def _count(text):
    """A number of rows."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows. Pass 1 or more")
    return int(text)


def _profile(given):
    """Runs a script in a profile; what it raises, an exit too, is raised after the table."""
    import os
    import runpy

    from ultramarine import profile

    if not os.path.exists(given.script):
        print(
            f"python -m ultramarine profile: {given.script} does not exist. Check the path",
            file=sys.stderr,
        )
        return 2
    # As `python SCRIPT` does: set the script's arguments, and put its directory first on the path.
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
    # The report gives the reasons for skipped files, so the log need not.
    backends._core._show_report()
    if directories or not files:
        if directories:
            backends.set_search_paths(directories)
        backends.load_all(duplicates=given.all, probe=given.probe)
    if files and given.probe is not False:
        # Probe libraries in another process, so that one that crashes is reported instead of ending
        # this command.
        os.environ["ULTRAMARINE_BACKEND_PROBE"] = "1"
    for path in files:
        try:
            backends.load(path)
        except (OSError, RuntimeError, ValueError):
            # The report shows the error.
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

"""`python -m ultramarine_dlpack_check MODULE ...`"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ultramarine_dlpack_check import __doc__ as about
from ultramarine_dlpack_check import report
from ultramarine_dlpack_check.cases import load
from ultramarine_dlpack_check.runner import Result, run


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ultramarine_dlpack_check",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="default: ultramarine")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--list", action="store_true", help="the cases and their rules")
    parser.add_argument("--verbose", action="store_true", help="each result as it comes")
    parser.add_argument("--strict", action="store_true", help="count the rules of ours too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="the table of docs")
    parser.add_argument("--loops", type=int, default=100_000, help="of the cases about memory")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Runs the suite; 1 if anything that counts failed."""
    asked = arguments(given)
    load()
    if asked.list:
        print(report.listing())
        return 0

    def tell(result: Result) -> None:
        if asked.verbose:
            print(f"{result.outcome:<6} {result.case}  {result.message}".rstrip(), flush=True)
            if result.bad and result.output.strip():
                print("    | " + "\n    | ".join(result.output.strip().splitlines()[-12:]))

    modules = asked.modules or ["ultramarine"]
    runs = [run(m, asked.only, loops=asked.loops, tell=tell) for m in modules]
    print(report.table(runs))
    for done in runs:
        found = report.findings(done)
        print("\n" + found if found else "")
    print("\n".join(report.totals(done) for done in runs))
    if asked.json:
        asked.json.write_text(report.to_json(runs))
    if asked.markdown:
        asked.markdown.write_text(report.markdown(runs))
    return 1 if any(done.missing or done.failed(asked.strict) for done in runs) else 0


if __name__ == "__main__":
    sys.exit(main())

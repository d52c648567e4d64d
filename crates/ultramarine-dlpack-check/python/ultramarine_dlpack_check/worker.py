"""Runs cases on one library, in a process that may crash: names come by standard input, results
go to the file descriptor of the second argument, each as a line."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from ultramarine_dlpack_check.adapters import adapter
from ultramarine_dlpack_check.case import CASES, Case, Failed, NotApplicable, Skipped, described
from ultramarine_dlpack_check.cases import load
from ultramarine_dlpack_check.target import Target


def outcome(case: Case, target: Target) -> tuple[str, str]:
    """What came of a case, and what it told."""
    try:
        if not target.adapter.host and case.group != "cuda":
            raise NotApplicable("its arrays are not in the host's memory")
        case.run(target)
    except Failed as error:
        return "fail", str(error)
    except NotApplicable as error:
        return "n.a.", str(error)
    except Skipped as error:
        return "skip", str(error)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return "fail", f"{described(error)} ({os.path.basename(last.filename)}:{last.lineno})"
    return "pass", ""


def settled(case: Case, target: Target) -> tuple[str, str]:
    """The outcome of a case together with the account of its tensors."""
    kind, message = outcome(case, target)
    try:
        target.settle()
    except Failed as error:
        if kind != "fail":
            return "fail", str(error)
        message += f"; {error}"
    return kind, message


def main() -> None:
    module, answers, loops = sys.argv[1], os.fdopen(int(sys.argv[2]), "w"), int(sys.argv[3])
    load()

    def answer(**said: Any) -> None:
        print(json.dumps(said), file=answers, flush=True)

    try:
        target = Target(adapter(module), loops)
    except Exception as error:
        answer(missing=described(error))
        return
    answer(version=target.adapter.version)
    for line in sys.stdin:
        kind, message = settled(CASES[line.strip()], target)
        answer(outcome=kind, message=message)


if __name__ == "__main__":
    main()

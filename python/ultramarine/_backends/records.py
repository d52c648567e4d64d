"""Results of the functions in `ultramarine.backends`."""

from types import SimpleNamespace

from ultramarine import _core


class Backend(SimpleNamespace):
    """Loaded backend.

    Attributes:
        name (str): Name.
        variant (str): Variant of the name; several may exist of one backend.
        version (str): Version.
        score (int): Suitability for this machine; the highest score of a name is loaded.
        device_type (DeviceType): Kind of the devices that it serves.
        devices (list[Device]): Devices that it serves.
        descriptions (list[str]): Descriptions of the devices.
        dlpack_device_type (int): DLPack's number for the devices.
        path (str | None): Path of its file; None if it is built in.

    Example:
        >>> mx.backends.get("cpu").name
        'cpu'
    """

    __module__ = "ultramarine.backends"


class Offer(SimpleNamespace):
    """Backend as a filter of `load_all` sees it, before it is initialised.

    Attributes:
        name (str): Name.
        variant (str): Variant of the name.
        version (str): Version.
        score (int): Suitability for this machine.
        device_type (DeviceType): Kind of the devices that it serves.
        devices (list): What is known of each device: its `name`, `memory` in bytes (0 if unknown), `uuid`
            and `pci` address (or None).
        path (str): Path of its file.

    Example:
        >>> mx.backends.load_all(filter=lambda offer: isinstance(offer, mx.backends.Offer) and offer.score < 0)
        []
    """

    __module__ = "ultramarine.backends"


class Candidate(SimpleNamespace):
    """File that was looked at, and its outcome.

    Attributes:
        path (str): Path of the file.
        rule (str): Rule by which it was found.
        name (str): Name of the backend.
        variant (str): Variant of the name.
        outcome (str): "loaded", "skipped" (nothing is wrong with it) or "rejected".
        stage (str): Last stage that it reached.
        code (str | None): Reason of being left out, as a word.
        reason (str | None): Reason of being left out, as text.
        remedy (str | None): Remedy.
        properties (dict | None): Properties that it declares, as far as they are known.
        score (int | None): Suitability for this machine, if it is known.
        winner (bool): True for the one of its name that is loaded.
        devices (list[str]): Names of its devices.
        milliseconds (float): Time that it took.

    Example:
        >>> remedies = [file.remedy for file in mx.backends.report() if file.outcome == "rejected"]
    """

    __module__ = "ultramarine.backends"


class Report:
    """All files that were looked at. Printed, it is a table.

    Attributes:
        directories (list[dict]): Dictionaries with `path`, `rule`, and the number of files `found` or an
            `error`.
        candidates (list[Candidate]): The files, over which iteration runs.

    Example:
        >>> report = mx.backends.Report()
        >>> rejected = [file.path for file in report if file.outcome == "rejected"]
    """

    __module__ = "ultramarine.backends"

    def __init__(self):
        import json

        self._table = _core._report_table()
        report = json.loads(_core._report_json())
        self.directories = report["directories"]
        self.candidates = [_candidate(c) for c in report["candidates"]]

    def __iter__(self):
        return iter(self.candidates)

    def __len__(self):
        return len(self.candidates)

    def __str__(self):
        return self._table

    def __repr__(self):
        loaded = sum(c.outcome == "loaded" for c in self.candidates)
        return f"Report({len(self.candidates)} candidates, {loaded} loaded)"


def _candidate(fields):
    why = fields.pop("reason") or {}
    return Candidate(
        code=why.get("code"), reason=why.get("text"), remedy=why.get("remedy"), **fields
    )


class OpCount(SimpleNamespace):
    """Counts of an operation on a device.

    Attributes:
        device (Device): Device.
        backend (str): Name of the backend whose kernels ran.
        variant (str): Variant of the backend.
        op (str): Name of the operation.
        native (int): Runs by a kernel of the operation.
        decomposed (int): Runs as simpler operations on the device.
        cpu (int): Runs on the CPU.

    Example:
        >>> mx.eval(mx.sort(mx.array([3, 1, 2])))
        >>> any(row.op == "sort" and row.native > 0 for row in mx.backends.op_counts())
        True
    """

    __module__ = "ultramarine.backends"


class OpCounts(list):
    """List of `OpCount`. Printed, it is a table.

    Example:
        >>> mx.eval(mx.sort(mx.array([3, 1, 2])))
        >>> "sort" in str(mx.backends.op_counts())
        True
    """

    __module__ = "ultramarine.backends"

    def __str__(self):
        titles = ("device", "backend", "op", "native", "decomposed", "cpu")
        rows = [
            (
                f"{row.device.type.name}:{row.device.index}",
                "-".join(filter(None, [row.backend, row.variant])),
                row.op,
                *map(str, (row.native, row.decomposed, row.cpu)),
            )
            for row in self
        ]
        if not rows:
            return "no operation has run yet"
        widths = [max(map(len, column)) for column in zip(titles, *rows)]
        # Align names to the left, numbers to the right.
        lines = [
            "  ".join(f"{c:{'<' if i < 3 else '>'}{w}}" for i, (c, w) in enumerate(zip(r, widths)))
            for r in [titles, *rows]
        ]
        return "\n".join(line.rstrip() for line in lines)


class Stats(SimpleNamespace):
    """Counts of evaluation in the whole process.

    Attributes:
        commands (int): Commands given to backends.
        replays (int): Recordings of commands that backends replayed at once.
        fused (int): Fused programs among them.
        fused_operations (int): Operations in these programs.
        bytes_read (int): Bytes that all commands read; a broadcast operand counts once, registers do not.
        bytes_written (int): Bytes that all commands wrote.
        donations (int): Results that took over the memory of an operand.
        contiguous_copies (int): Copies for backends that need contiguous operands.
        repeated (int): Evaluations and calls of compiled functions that ran the commands of an earlier one.
        mirrors (int): Copies between the host and a device.
        transfers (int): Copies between accelerators.
        bytes_to_host (int): Bytes that were copied from devices to the host.
        bytes_to_devices (int): Bytes that were copied to devices, from the host or from another accelerator.

    Example:
        >>> mx.backends.stats().commands >= 0
        True
    """

    __module__ = "ultramarine.backends"

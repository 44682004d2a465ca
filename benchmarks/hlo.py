"""Counts the kernels of a program from its optimised HLO text."""

import re

# What costs nothing at run time: names, views, constants and containers.
_FREE = {
    "after-all",
    "bitcast",
    "constant",
    "get-tuple-element",
    "opt-barrier",
    "parameter",
    "partition-id",
    "replica-id",
    "tuple",
}
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
# `%name = shape opcode(operands), attributes`; the shape of a tuple is in
# brackets, which hold spaces, but no `=` outside of comments.
_INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([\w\-]+)\((.*)$"
)
_COMMENT = re.compile(r"/\*.*?\*/")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


def count_kernels(text):
    """Counts the instructions that a program executes.

    A fusion counts once. A loop counts as often as it turns, where XLA knows
    how often that is, and else once. Of the branches of a condition the
    longest counts.

    Args:
        text: str, optimised HLO.

    Returns:
        int.
    """
    computations, entry = _parse(text)
    known = {}

    def count(name):
        if name not in known:
            known[name] = sum(
                _cost(opcode, rest, count)
                for opcode, rest in computations[name]
            )
        return known[name]

    return count(entry)


def _parse(text):
    """Returns `{computation: [(opcode, rest of the line)]}` and the entry."""
    computations, entry, current = {}, None, None
    for line in _COMMENT.sub("", text).splitlines():
        if header := _COMPUTATION.match(line):
            current = computations.setdefault(header[2], [])
            entry = header[2] if header[1] else entry
        elif current is not None and (found := _INSTRUCTION.match(line)):
            current.append((found[1], found[2]))
    return computations, entry


def _cost(opcode, rest, count):
    if opcode in _FREE or opcode.endswith("-done"):
        return 0
    if opcode == "while":
        trips = _TRIPS.search(rest)
        turn = sum(count(_called(rest, key)) for key in ("body", "condition"))
        return turn * (int(trips[1]) if trips else 1)
    if opcode == "call":
        return count(_called(rest, "to_apply"))
    if opcode == "conditional":
        return max(count(name) for name in _branches(rest))
    return 1


def _called(rest, key):
    return re.search(rf"{key}=%?([\w.\-]+)", rest)[1]


def _branches(rest):
    several = re.search(r"branch_computations=\{([^}]*)\}", rest)
    if several:
        return [name.strip().lstrip("%") for name in several[1].split(",")]
    keys = ("true_computation", "false_computation")
    return [_called(rest, key) for key in keys]

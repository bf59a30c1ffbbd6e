"""One advertising report: from the bytes of the HCI event to address, signal strength and every structure of the payload."""

import programs
from programs import Measured, Rounds
from tables import show

ROUNDS = 13
# Who, which order, how many passes over all events a round takes.
SWIFT = [("BareBLE, structures walked in place", "walk", 400), ("BareBLE, the same fields as below", "fields", 200)]
PYTHON = [
    ("bluetooth-data-tools, payload only", "bluetooth-data-tools", 100),
    ("the same, found in its cache", "cached", 200),
    ("Bumble", "bumble", 5),
]


def measure():
    programs.build_python()
    lines = (programs.ROOT / "Fixtures" / "adv" / "reports.txt").read_text().splitlines()
    events = [line for line in lines if line.startswith("04")]
    preamble = "\n".join([*events, ".\n"])
    swift = [programs.BUILD / "benchmarks", "parse"]
    python = [programs.PYTHON, programs.HERE / "Python" / "parse_advertisements.py"]

    times = {order: Rounds() for _, order, _ in [*SWIFT, *PYTHON]}
    loops = Rounds()
    with programs.one_cpu():
        ours, theirs = Measured(swift, preamble), Measured(python, preamble)
        for _ in range(ROUNDS):
            for _, order, passes in SWIFT:
                times[order].add(ours.order(order, passes)[0], passes * len(events))
            loops.add(theirs.order("empty", 200)[0], 200 * len(events))
            for _, order, passes in PYTHON:
                times[order].add(theirs.order(order, passes)[0], passes * len(events))
        ours.end()
        theirs.end()
    # Python's own loop does not count. Its least time: one that was interrupted would make the parsers too fast.
    for _, order, _ in PYTHON:
        times[order].times = [time - loops.least for time in times[order].times]

    def stdin(order, passes):
        return f"{preamble}{order} {passes}\n"

    rows, figures = [], {}
    base = times["bluetooth-data-tools"].least
    for command, variants in ((swift, SWIFT), (python, PYTHON)):
        for title, order, _ in variants:
            instructions, allocations = (
                programs.per_operation(count, command, stdin, order, 10, len(events))
                for count in (programs.instructions, programs.allocations))
            time = times[order]
            rows.append([title, time.least, time.median, base / time.least, instructions, allocations])
            if command is swift:
                figures[f"{order}: time / bluetooth-data-tools"] = time.least / base
                figures[f"{order}: time / Bumble"] = time.least / times["bumble"].least
                figures[f"{order}: instructions"] = instructions
                figures[f"{order}: allocations"] = allocations
    show(
        f"Parsing one advertising report ({len(events)} recorded events, {ROUNDS} rounds in turns on one processor)",
        ["parser", "ns min", "ns median", "times as fast", "instructions", "allocations"], rows,
        "Instructions are valgrind's count, allocations calls of malloc and its kin (Python: PYTHONMALLOC=malloc).")
    return figures

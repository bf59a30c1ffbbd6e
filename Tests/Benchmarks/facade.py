"""A read through CoreBluetooth, from the call to the callback on the program's queue, against BareBLE's own read.

Both read the same virtual device on the loop of the same process, in turns, and both change threads twice for each read. The threshold
is for one processor. What a wake-up of a thread costs on several depends on the machine: those figures are shown beside it.
"""

import os

import programs
from programs import Measured, Rounds, one_cpu
from tables import show

ROUNDS = 20
READS = 1000
READERS = {"bareble": "BareBLE, a task off the loop", "corebluetooth": "CoreBluetooth, a queue of its own"}


def medians():
    """Shows what both readers take, where this program may run; returns the ratio of their medians."""
    rounds = {name: Rounds() for name in READERS}
    client = Measured([programs.BUILD / "facade-benchmark"])
    for _ in range(ROUNDS):
        for name in READERS:
            rounds[name].add(client.order(name, READS)[0], READS)
    client.end()
    processors = len(os.sched_getaffinity(0))
    base = rounds["bareble"].median
    show(
        f"One read after the other from a virtual device ({READS:,} a round, {ROUNDS} rounds in turns; processors: {processors})",
        ["reader", "µs min", "µs median", "median / BareBLE"],
        [[title, rounds[name].least / 1000, rounds[name].median / 1000, rounds[name].median / base] for name, title in READERS.items()],
        "The virtual device and radio, which are the same for both, are part of every figure.")
    return rounds["corebluetooth"].median / base


def measure():
    medians()
    with one_cpu():
        return {"read through CoreBluetooth: time / BareBLE": medians()}

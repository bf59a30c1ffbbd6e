"""A read through CoreBluetooth, from the call to the callback on the program's queue, against BareBLE's own read.

Both read the same virtual device, on the loop of the same process, in turns.
"""

import programs
from programs import Measured, Rounds
from tables import show

ROUNDS = 20
READS = 1000
READERS = {"bareble": "BareBLE, a task off the loop", "corebluetooth": "CoreBluetooth, a queue of its own"}


def measure():
    rounds = {name: Rounds() for name in READERS}
    client = Measured([programs.BUILD / "facade-benchmark"])
    for _ in range(ROUNDS):
        for name in READERS:
            rounds[name].add(client.order(name, READS)[0], READS)
    client.end()
    ratio = rounds["corebluetooth"].median / rounds["bareble"].median
    show(
        f"One read after the other from a virtual device ({READS:,} a round, {ROUNDS} rounds in turns)",
        ["reader", "µs min", "µs median", "median / BareBLE"],
        [[title, rounds[name].least / 1000, rounds[name].median / 1000, rounds[name].median / rounds["bareble"].median]
         for name, title in READERS.items()],
        "The virtual device and radio, which are the same for both, are part of every figure.")
    return {"read through CoreBluetooth: time / BareBLE": ratio}

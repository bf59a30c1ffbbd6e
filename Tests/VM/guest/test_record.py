"""Kernel tests of --record: sessions on the kernel's sockets, checked here by `blescan replay --check`.

The files are copied to the exchange folder with the expected contents, and captures.py has Wireshark and btmon read
them on the host, where they need a fraction of the time.
"""

import shutil
import stat
from pathlib import Path

from harness import *

CAPTURES = Path("/run/vm/exchange/captures")
SCRATCH = Path("/run/vm/captures")  # the exchange folder stores no owners and no modes


def value_handle(peer, uuid):
    return next(row["handle"] for row in tree(peer) if row.get("uuid") == uuid and "properties" in row)


def recorded(name, *command, **expected):
    """Runs a command with --record, replays and checks the file, and exports it with the expected contents."""
    SCRATCH.mkdir(exist_ok=True)
    CAPTURES.mkdir(exist_ok=True)
    file = SCRATCH / f"{name}.btsnoop"
    outcome = blescan(*command, "--record", str(file)).must(DONE)
    same(stat.S_IMODE(file.stat().st_mode), 0o600, "mode of the file")
    shutil.copyfile(file, CAPTURES / file.name)
    (CAPTURES / f"{name}.json").write_text(json.dumps(expected))
    return outcome, file


def checked(file):
    """Returns the result of `replay --check` for the links in the file, and of `replay` for its ATT packets."""
    check = blescan("replay", str(file), "--check").must(DONE)
    packets = blescan("replay", str(file), "--only", "att", "--json").must(DONE).objects
    return check, packets


@test
def a_scan_is_recorded():
    outcome, file = recorded("scan", "scan", "--each", "packet", "--count", "20", address=PULSE.split("/")[0])
    same(len(outcome.out.splitlines()), 20, "lines")
    objects = blescan("replay", str(file), "--only", "adv", "--json").must(DONE).objects
    # One packet has one report here, and one line of the reader at least one report.
    assert len(objects) >= 20, f"{len(objects)} reports in the file"


@test
def a_read_is_recorded():
    handle = value_handle("Pulse", "2a19")
    _, file = recorded("read", "read", PULSE, f"0x{handle:04x}", handle=handle, value="4d")
    checked(file)


@test
def a_subscription_is_recorded():
    handle = value_handle("Pulse", "2a37")
    switch = next(row["handle"] for row in tree("Pulse") if row["type"] == "2902" and row["handle"] > handle)
    _, file = recorded("notify", "notify", PULSE, "2a37", "--count", "3", handle=handle, switch=switch)
    checked(file)


@test
def an_exploration_is_recorded():
    rows = tree("Second")
    services = [row["handle"] for row in rows if row["type"] == "2800"]
    values = [row["handle"] for row in rows if "properties" in row]
    _, file = recorded("explore", "explore", SECOND, services=services, values=values)
    checked(file)


if __name__ == "__main__":
    main()

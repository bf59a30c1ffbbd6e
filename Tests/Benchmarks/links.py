"""A link over a socketpair: one awaited read after the other, and bursts of notifications.

The peer is the same C program for everybody, in a process of its own; each client has its own copy of it.
"""

import socket
import subprocess
import time
from pathlib import Path

import programs
from programs import Measured, Rounds
from tables import show

ROUNDS = 60
READS = 200
NOTIFICATIONS = 2000
IDLE_SECONDS = 3
CLIENTS = {
    "C": ("C client on epoll", "read", "notify"),
    "loop": ("BareBLE, task on the loop", "read-loop", "notify-loop"),
    "task": ("BareBLE, any other task", "read-task", "notify-task"),
}


def linked(command):
    """Starts a client and its peer, with a socketpair between them."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer = subprocess.Popen([programs.BUILD / "att_peer", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    client = Measured([*command, ours.fileno()], pass_fds=[ours.fileno()])
    ours.close()
    theirs.close()
    return client, peer


def switches(process):
    """How often the threads of a process have gone to sleep, or lost the processor."""
    total = 0
    for status in Path(f"/proc/{process}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if "ctxt_switches" in line:
                total += int(line.split()[1])
    return total


def threads(process):
    """How many threads a process has."""
    return len(list(Path(f"/proc/{process}/task").iterdir()))


def idle_wake_ups(process, seconds=IDLE_SECONDS):
    time.sleep(1)
    before = switches(process)
    time.sleep(seconds)
    return switches(process) - before


def measure():
    reads = {name: Rounds() for name in CLIENTS}
    notifications = {name: Rounds() for name in CLIENTS}
    dropped = dict.fromkeys(CLIENTS, 0)
    with programs.one_cpu():
        c_client, c_peer = linked([programs.BUILD / "att_client"])
        swift_client, swift_peer = linked([programs.BUILD / "benchmarks", "link"])
        for _ in range(ROUNDS):
            for name, (_, read, notify) in CLIENTS.items():
                client = c_client if name == "C" else swift_client
                reads[name].add(client.order(read, READS)[0], READS)
                answer = client.order(notify, NOTIFICATIONS)
                notifications[name].add(answer[0], NOTIFICATIONS)
                dropped[name] += 0 if name == "C" else answer[2]
        for client, peer in ((c_client, c_peer), (swift_client, swift_peer)):
            client.end()
            peer.wait(timeout=30)

    figures = {}
    read_rows, notify_rows = [], []
    for name, (title, _, _) in CLIENTS.items():
        ratio = reads[name].median / reads["C"].median
        read_rows.append([title, reads[name].least / 1000, reads[name].median / 1000, ratio])
        notified = notifications[name]
        notify_ratio = notified.median / notifications["C"].median
        lost = dropped[name] / (ROUNDS * NOTIFICATIONS)
        notify_rows.append([title, notified.least / 1000, round(1e9 / notified.least), notify_ratio, f"{lost:.1%}"])
        if name != "C":
            figures[f"read from {name}: time / C"] = ratio
            figures[f"notification to {name}: time / C"] = notify_ratio
            figures[f"notifications to {name}: dropped"] = dropped[name]
    rounds = f"{ROUNDS} rounds in turns, everything on one processor"
    show(
        f"One awaited read over a socketpair, 22 bytes ({READS:,} a round, {rounds})",
        ["client", "µs min", "µs median", "median / C"], read_rows,
        "The time of the C peer, which is the same for all, is part of every figure.")
    show(
        f"Notifications of 20 bytes through a subscription, as fast as the peer can send ({NOTIFICATIONS:,} a round)",
        ["client", "µs min", "a second", "median / C", "dropped"], notify_rows,
        "Dropped: the buffer of 256 values was full, as peer and consumer share the one processor; the sequence says so.")
    return figures

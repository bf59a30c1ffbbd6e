"""A server over a socketpair: a stored value of 22 bytes, read again and again.

The client is the same C program for everybody, in a process of its own; each server has its own copy of it. BlueZ's server is
compiled here from the sources of the Debian package bluez-source, where apt-get can download that.
"""

import socket
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

import programs
from programs import Measured, Rounds
from tables import show

ROUNDS = 60
READS = 200
# What one read adds is the difference of two runs.
FEW, MANY = 200, 400
BLUEZ = programs.BUILD / "bluez-source"
BLUEZ_FILES = [
    "lib/bluetooth.c", "lib/uuid.c", *(
        f"src/shared/{name}.c" for name in (
            "att", "crypto", "gatt-db", "gatt-helpers", "gatt-server", "io-mainloop", "mainloop", "mainloop-notify", "queue",
            "timeout-mainloop", "util"))]


def build_bluez():
    """BlueZ's server; `None` where its sources cannot be had."""
    server = programs.BUILD / "bluez_server"
    if not BLUEZ.exists():
        with tempfile.TemporaryDirectory(dir=programs.BUILD) as folder:
            done = subprocess.run(
                ["apt-get", "-q", "download", "bluez-source"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                text=True)
            package = next(Path(folder).glob("*.deb"), None)
            if done.returncode != 0 or package is None:
                print(f"\nBlueZ is left out, apt-get could not download bluez-source: {done.stderr.strip()[-300:]}")
                return None
            programs.call(["dpkg-deb", "-x", str(package), folder])
            with tarfile.open(f"{folder}/usr/src/bluez.tar.bz2") as sources:
                # The folder of the release comes first, whatever its name is.
                wanted = [
                    member for member in sources
                    if member.isfile() and member.name.split("/", 1)[-1].startswith(("lib/", "src/shared/"))]
                for member in wanted:
                    member.name = member.name.split("/", 1)[-1]
                sources.extractall(f"{folder}/sources", wanted)
            Path(f"{folder}/sources").rename(BLUEZ)
    # Its warnings are not ours.
    programs.compile(
        server, f"{programs.HERE}/C/bluez_server.c", *(f"{BLUEZ}/{name}" for name in BLUEZ_FILES),
        options=["-w", "-D_GNU_SOURCE", f"-I{BLUEZ}", f"-I{BLUEZ}/src/shared"])
    return server


class Served:
    """A server and its client, with a socketpair between them."""

    def __init__(self, command, handle=None, environment=None):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.server = subprocess.Popen(
            [str(word) for word in command] + [str(theirs.fileno())], pass_fds=[theirs.fileno()], stdout=subprocess.PIPE,
            text=True, env=environment)
        theirs.close()
        handle = handle or int(self.server.stdout.readline())
        self.client = Measured([programs.BUILD / "att_client", ours.fileno(), handle], pass_fds=[ours.fileno()])
        ours.close()

    def read(self, count):
        return self.client.order("read", count)[0]

    def read_with_pauses(self, count):
        """Reads when the server sleeps: how often it finds the next request without waiting is chance."""
        for _ in range(count):
            self.read(1)
            time.sleep(0.002)

    def end(self):
        self.client.end()
        if self.server.wait(timeout=30) != 0:
            raise SystemExit(f"{self.server.args[0]} ended with {self.server.returncode}")


def allocations(command, handle):
    """How often a server takes memory from the heap for one read."""
    counts = []
    for reads in (FEW, MANY):
        with tempfile.NamedTemporaryFile("r") as report:
            served = Served(command, handle, programs.counting_allocations(report.name))
            served.read_with_pauses(reads)
            served.end()
            counts.append(int(report.read()))
    return (counts[1] - counts[0]) / (MANY - FEW)


def system_calls(command, handle):
    """How many system calls a server makes for one read."""
    counts = []
    for reads in (FEW, MANY):
        with tempfile.NamedTemporaryFile("r") as report:
            served = Served(["strace", "-f", "-qq", "-o", report.name, *command], handle)
            served.read_with_pauses(reads)
            served.end()
            counts.append(sum(1 for line in report if "resumed>" not in line))
    return (counts[1] - counts[0]) / (MANY - FEW)


def measure():
    bluez = build_bluez()
    servers = {
        "C": ("C peer, fixed responses", [programs.BUILD / "att_peer"], 3),
        "BlueZ": ("BlueZ's shared GATT server", [bluez], None),
        "BareBLE": ("BareBLE, LocalPeripheral", [programs.BUILD / "benchmarks", "serve"], None),
    }
    if bluez is None:
        del servers["BlueZ"]
    times = {name: Rounds() for name in servers}
    with programs.one_cpu():
        running = {name: Served(command, handle) for name, (_, command, handle) in servers.items()}
        for _ in range(ROUNDS):
            for name, served in running.items():
                times[name].add(served.read(READS), READS)
        for served in running.values():
            served.end()
    rows, figures = [], {}
    for name, (title, command, handle) in servers.items():
        calls, memory = system_calls(command, handle), allocations(command, handle)
        base = times["BlueZ" if bluez else "C"].median
        rows.append([title, times[name].least / 1000, times[name].median / 1000, times[name].median / base, calls, memory])
    ours = times["BareBLE"].median
    figures["served read: system calls"], figures["served read: allocations"] = rows[-1][4:]
    # The stricter comparison, where it can be made; the other takes its place elsewhere.
    figures["served read: time / limit"] = (
        ours / times["BlueZ"].median / 1.3 if bluez else ours / times["C"].median / 1.5)
    show(
        f"One read of a stored value of 22 bytes, served over a socketpair to a C client ({READS:,} a round, {ROUNDS} rounds in "
        "turns, everything on one processor)",
        ["server", "µs min", "µs median", f"median / {'BlueZ' if bluez else 'C'}", "system calls", "allocations"], rows,
        "The time of the C client, which is the same for all, is part of every figure; calls and allocations are the server's.")
    return figures

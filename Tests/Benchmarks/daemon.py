"""A whole daemon that scans and reads (Tests/SampleDaemon): how large it is, and what it costs while nothing happens."""

import socket
import subprocess
import tempfile
import time
from pathlib import Path

import links
import programs
from tables import show

STARTS = 15


def sizes(process):
    """Resident memory, and the part of it that only this process can have, in MB."""
    found = {}
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split()[:2]
        found[name] = int(value) / 1024
    return found["Rss:"], found["Anonymous:"]


def served(daemon, path):
    """Starts the daemon on a peer behind a socket; returns both, and how long the first value took."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        Path(path).unlink(missing_ok=True)
        listener.bind(path)
        listener.listen()
        start = time.perf_counter()
        process = subprocess.Popen([daemon, f"unix:{path}"], stdout=subprocess.PIPE, text=True)
        connection, _ = listener.accept()
        with connection:
            peer = subprocess.Popen(
                [programs.BUILD / "att_peer", str(connection.fileno())], pass_fds=[connection.fileno()])
        line = process.stdout.readline()
        elapsed = time.perf_counter() - start
    if not line.startswith("battery: "):
        raise SystemExit(f"the sample daemon said {line!r}")
    return process, peer, elapsed


def end(process, peer):
    process.terminate()
    process.wait(timeout=30)
    peer.wait(timeout=30)


def measure():
    daemon = programs.BUILD / "sample-daemon"
    libraries = subprocess.run(["ldd", daemon], capture_output=True, text=True).stdout
    forbidden = [line.split()[0] for line in libraries.splitlines() if "Foundation" in line or "bluetooth" in line]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/peer"
        times = []
        for _ in range(STARTS):
            process, peer, elapsed = served(daemon, path)
            times.append(elapsed * 1000)
            end(process, peer)
        process, peer, _ = served(daemon, path)
        wake_ups = links.idle_wake_ups(process.pid)
        threads = links.threads(process.pid)
        resident, private = sizes(process.pid)
        end(process, peer)
    size = daemon.stat().st_size
    show(
        "A stripped daemon that scans, connects, reads and subscribes, Swift's runtime linked in", ["", ""],
        [
            ["size, MB", size / 1e6],
            ["resident memory, MB", resident],
            ["of it neither program nor library files, MB", private],
            ["from start to the first value read, the peer's process started meanwhile, ms min", min(times)],
            ["threads", threads],
            [f"wake-ups in {links.IDLE_SECONDS} s of a subscribed, idle link", wake_ups],
            ["libraries of Foundation or libbluetooth loaded", len(forbidden)],
        ])
    return {
        "size, MB": size / 1e6, "resident memory, MB": resident, "threads": threads, "wake-ups while idle": wake_ups,
        "libraries of Foundation or libbluetooth": len(forbidden),
    }

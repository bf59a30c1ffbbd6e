"""Commands that need no radio: what blescan does before the first byte of its output, and how long that takes."""

import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import captures
import programs
from tables import show

ROUNDS = 30
# Milliseconds in which the first byte of these commands has to be there.
LIMIT = 50


def commands(blescan, large):
    capture = programs.ROOT / "Fixtures" / "hci" / "three-devices.btsnoop"
    return {
        "decode": [blescan, "decode", "--hex", "02010603030d18060950756c7365"],
        "replay": [blescan, "replay", capture, "--as-scan"],
        "replay of a large capture": [blescan, "replay", large, "--as-scan"],
        "read of a virtual device": [blescan, "read", "demo:heart-rate", "2a19"],
        "explore of a virtual device": [blescan, "explore", "demo:heart-rate"],
    }


def first_byte(command):
    """Milliseconds from the start of the program to the first byte of its output."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        found = os.read(process.stdout.fileno(), 1)
        elapsed = (time.perf_counter() - start) * 1000
        process.kill()
    if not found:
        raise SystemExit(f"{command} printed nothing")
    return elapsed


def calls_before_output(command):
    """The system calls of all threads before the first one that writes to standard output."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        # A reader that goes away after one byte ends the program soon.
        with subprocess.Popen(
                ["strace", "-f", "-qq", "-e", "signal=none", "-o", log, *command], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            os.read(process.stdout.fileno(), 1)
            process.stdout.close()
            process.wait(timeout=60)
        count = 0
        for line in log.read_text(errors="replace").splitlines():
            # A call that was interrupted in the log is counted where it begins.
            found = re.match(r"\d+ +(\w+)\((\d*)", line)
            if not found:
                continue
            if found[1] in ("write", "writev") and found[2] == "1":
                return count
            count += 1
    return None


def measure():
    blescan = programs.build_blescan()
    figures, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.btsnoop"
        captures.write(large, Path(folder) / "large.txt", captures.FEWER)
        with programs.one_cpu():
            for title, words in commands(blescan, large).items():
                command = [str(word) for word in words]
                least = min(first_byte(command) for _ in range(ROUNDS))
                calls = calls_before_output(command)
                rows.append([title, least, calls])
                figures[f"{title}: time / {LIMIT} ms"] = least / LIMIT
                figures[f"{title}: system calls"] = calls
    few, many = figures["replay: system calls"], figures["replay of a large capture: system calls"]
    figures["replay: system calls for a large capture / a small one"] = many / few if few and many else None
    show("The first byte of the output, on one processor", ["", "ms min", "system calls before it"], rows)
    return figures

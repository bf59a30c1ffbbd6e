"""A capture of a million advertising reports: printed as JSON by `blescan replay`, `blescan decode` and tshark, and as a scan."""

import os
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import programs
from tables import show

REPORTS = 1_000_000
# How much memory grows with the capture is seen beside one of a tenth of it.
FEWER = REPORTS // 10
# Microseconds from the beginning of year 0 to 1970, as btsnoop counts them.
EPOCH = 0x00DCDDB30F2F8000


def events():
    """The recorded events that hold one report each."""
    lines = (programs.ROOT / "Fixtures" / "adv" / "reports.txt").read_text().splitlines()
    packets = [bytes.fromhex(line) for line in lines if line.startswith("04")]
    return [packet for packet in packets if packet[4] == 1]


def write(capture, text, count):
    """The same events in a btsnoop file and as lines for `decode`."""
    packets = events()
    with open(capture, "wb") as binary, open(text, "w") as lines:
        binary.write(b"btsnoop\0" + struct.pack(">II", 1, 1002))
        for number in range(count):
            packet = packets[number % len(packets)]
            now = EPOCH + 1_700_000_000_000_000 + number * 1000
            binary.write(struct.pack(">IIIIQ", len(packet), len(packet), 3, 0, now) + packet)
            lines.write(packet.hex() + "\n")


def run(*command):
    """Seconds, and the most memory that was resident in MB."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command[0]} ended with {status}")
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def measure():
    blescan = programs.build_blescan()
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for count in (FEWER, REPORTS):
            files[count] = (Path(folder) / f"{count}.btsnoop", Path(folder) / f"{count}.txt")
            write(*files[count], count)
        commands = {
            "blescan replay --json": lambda count: [blescan, "replay", "--json", files[count][0]],
            "blescan replay --as-scan": lambda count: [blescan, "replay", "--as-scan", files[count][0]],
            "blescan decode --json": lambda count: [blescan, "decode", "--json", files[count][1]],
            "tshark -T json": lambda count: ["tshark", "-r", files[count][0], "-T", "json"],
        }
        with programs.one_cpu():
            small = {title: run(*command(FEWER)) for title, command in commands.items()}
            large = {title: run(*command(REPORTS)) for title, command in commands.items()}
    base = large["tshark -T json"][0]
    show(
        f"A capture of {REPORTS:,} advertising reports as JSON or as lines to /dev/null, on one processor",
        ["", "s", "µs a report", "times as fast", "MB resident", f"MB for {FEWER:,}"],
        [
            [title, seconds, seconds / REPORTS * 1e6, base / seconds, memory, small[title][1]]
            for title, (seconds, memory) in large.items()
        ])
    figures = {}
    for name, title in (
            ("replay", "blescan replay --json"), ("scan", "blescan replay --as-scan"), ("decode", "blescan decode --json")):
        seconds, memory = large[title]
        figures[f"{name}: time / tshark"] = seconds / base
        figures[f"{name}: memory / memory for a tenth"] = memory / small[title][1]
    return figures

"""The live table at a thousand reports a second: how much of a processor it takes, and how much memory."""

import fcntl
import os
import pty
import struct
import subprocess
import tempfile
import termios
import threading
import time
from pathlib import Path

import captures
import programs
from tables import show

SECONDS = 10
# The capture has a report in each millisecond, and is shown as fast as it was recorded.
REPORTS_A_SECOND = 1000
SIZES = [(80, 24), (200, 50)]


def processor_seconds(process):
    """The time that a process has used so far, in user space and in the kernel."""
    # Its name, in brackets, may have any character.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process):
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return None


def table(blescan, capture, columns, rows):
    """The share of a processor, the most megabytes that were resident, and the bytes that the terminal got in a second."""
    terminal, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [str(blescan), "replay", str(capture), "--screen"], stdin=program, stdout=program, stderr=program,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"})
    os.close(program)
    written = [0]

    def read():
        try:
            while data := os.read(terminal, 65536):
                written[0] += len(data)
        except OSError:
            pass  # The program has ended.

    reader = threading.Thread(target=read)
    reader.start()
    # The start is not what is measured.
    time.sleep(1)
    begin, used, before = time.monotonic(), processor_seconds(process.pid), written[0]
    time.sleep(SECONDS)
    share = (processor_seconds(process.pid) - used) / (time.monotonic() - begin)
    memory, shown = resident(process.pid), (written[0] - before) / SECONDS
    os.write(terminal, b"q")
    process.wait(timeout=30)
    reader.join()
    os.close(terminal)
    if process.returncode != 0 or not shown:
        raise SystemExit(f"the table ended with {process.returncode}, after {written[0]} bytes")
    return share, memory, shown


def measure():
    blescan = programs.build_blescan()
    figures, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "reports.btsnoop"
        captures.write(capture, Path(folder) / "reports.txt", REPORTS_A_SECOND * (SECONDS + 10))
        for columns, lines in SIZES:
            share, memory, shown = table(blescan, capture, columns, lines)
            title = f"{columns}x{lines}"
            rows.append([title, share * 100, memory, shown / 1000])
            figures[f"{title}: share of a processor"] = share
    show(
        f"The live table at {REPORTS_A_SECOND:,} reports a second", ["", "% of a processor", "MB resident", "kB/s written"],
        rows)
    return figures

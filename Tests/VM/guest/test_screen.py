"""Kernel tests of blescan's live table: a terminal, a real scan, and the state of both afterwards."""

import os
import pty
import select
import signal
import subprocess
import termios
import time

from harness import *

AT_REST = {"scanning": False, "connecting": False, "links": []}


class Terminal:
    """blescan on a terminal of its own, of 120 columns and 24 rows."""

    def __init__(self, *arguments):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        self.child = subprocess.Popen(
            [BLESCAN, *arguments], stdin=self.slave, stdout=self.slave, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), env={**os.environ, "TERM": "xterm", "LANG": "C.UTF-8"})

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.seen += os.read(self.master, 65536)

    def shows(self, *texts):
        end = time.monotonic() + PATIENCE
        while not all(text.encode() in self.seen for text in texts):
            assert time.monotonic() < end, f"{texts} do not come; there is {self.seen[-2000:]!r}"
            self.read(1)

    def keys(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """Reads until the program has ended."""
        end = time.monotonic() + PATIENCE
        while self.child.poll() is None and time.monotonic() < end:
            self.read(0.1)
        self.read(0)

    def left(self):
        """Checks that the program has ended normally, and has left nothing."""
        self.end()
        words = self.child.stderr.read().decode()
        same((self.child.poll(), "devices at the end" in words), (DONE, True), f"status and last words: {words!r}")
        assert self.seen.endswith(b"\x1b[?25h\x1b[?1049l"), f"the terminal is left by {self.seen[-200:]!r}"
        same(termios.tcgetattr(self.slave), self.before, "the terminal's settings")
        same(doing(), AT_REST, "what the controller does")


@test
def the_live_table_shows_who_is_there():
    table = Terminal()
    table.shows("\x1b[?1049h", "hci0", "active scan", "adv/s", PULSE.split("/")[0], SECOND.split("/")[0], "Pulse")
    table.keys("/pulse\r")
    table.shows("1 of ")
    table.keys("\x1b[B\r")
    table.shows("ADVERTISEMENT")
    table.keys("q")
    table.left()


@test
def a_device_of_the_table_is_browsed():
    table = Terminal()
    table.shows("active scan", "Pulse")
    table.keys("/pulse\r")
    table.shows("1 of ")
    table.keys("\x1b[B\r")
    table.shows("ADVERTISEMENT", "c connect")
    table.keys("c")
    # The tree, its first attribute, and the command that does the same.
    table.shows("connected  MTU", "Device Name", f"= blescan read {PULSE}")
    same(len(doing()["links"]), 1, "links meanwhile")
    table.keys("d")
    end = time.monotonic() + PATIENCE
    while doing()["links"] and time.monotonic() < end:
        table.read(0.1)
    same(doing()["links"], [], "links after d")
    table.keys("q")
    table.left()


@test
def signals_leave_terminal_and_controller_as_they_were():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        table = Terminal("scan", "--passive")
        table.shows("passive scan", PULSE.split("/")[0])
        table.child.send_signal(number)
        table.left()


@test
def a_time_that_is_over_ends_the_table():
    table = Terminal("scan", "--for", "3s")
    # Whether anything is received in this time does not matter.
    table.shows("active scan")
    table.left()


@test
def lines_are_printed_where_they_are_asked_for():
    for arguments in (("--plain",), ("--each", "change"), ("--count", "2"), ("--json",)):
        lines = Terminal("scan", *arguments, "--color", "never")
        lines.shows("connectable")
        lines.child.send_signal(signal.SIGINT)
        lines.end()
        same((lines.child.poll(), b"\x1b" in lines.seen), (DONE, False), f"status and sequences: {lines.seen[:200]!r}")


if __name__ == "__main__":
    main()

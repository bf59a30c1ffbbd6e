"""The kernel's own trace of a program."""

import os
import re
import subprocess
import time
from pathlib import Path

from harness import same

# Of 10 s each: longer than the 30 s for the response to a request.
QUIET_STRETCHES = 4


class SystemCalls:
    """The system calls that a process begins meanwhile, from the kernel's own trace."""

    FOLDER = Path("/sys/kernel/tracing")

    def __init__(self, process):
        self.process = process
        if not (self.FOLDER / "trace").exists():
            subprocess.run(["mount", "-t", "tracefs", "none", self.FOLDER], check=True)

    def set(self, name, text):
        (self.FOLDER / name).write_text(text)

    def __enter__(self):
        self.set("options/event-fork", "1")
        self.set("trace", "")
        # This process is traced as well: without its calls in the trace, tracing does not work.
        self.set("set_event_pid", " ".join([str(os.getpid()), *os.listdir(f"/proc/{self.process}/task")]))
        self.set("events/raw_syscalls/sys_enter/enable", "1")
        return self

    def __exit__(self, *_):
        self.set("events/raw_syscalls/sys_enter/enable", "0")
        calls = [line for line in (self.FOLDER / "trace").read_text().splitlines() if "sys_enter: " in line]
        own = re.compile(rf"-{os.getpid()}\s+\[")
        self.made = [line for line in calls if not own.search(line)]
        assert len(self.made) < len(calls), "the kernel's tracing has seen nothing at all"
        self.set("set_event_pid", "")


def check_idle(process):
    """Checks that a process ends up making no system calls: so nothing wakes it up either.

    Remaining work of the beginning ends first: the check that each link is stable, and the timers of requests that have
    long received their responses, which fire 30 s after them. So one quiet interval proves nothing, but all of these in
    a row cover every such timer.
    """
    stretches = []
    while len(stretches) < 15 and [bool(calls) for calls in stretches[-QUIET_STRETCHES:]] != [False] * QUIET_STRETCHES:
        with SystemCalls(process) as calls:
            time.sleep(10)
        stretches.append(calls.made)
    # The first ones show what wakes it up.
    same([calls[:12] for calls in stretches[-QUIET_STRETCHES:] if calls], [], f"system calls in {QUIET_STRETCHES} x 10 s")

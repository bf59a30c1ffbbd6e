"""The kernel's own trace of a program."""

import os
import re
import subprocess
from pathlib import Path


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

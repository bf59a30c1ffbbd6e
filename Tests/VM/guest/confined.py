"""confined.py: attempts what the service of Docs/packaging/blescan.service must not do, under the same restrictions,
and prints the results as JSON.

Each attempt's value is "done", or the name of the error.
"""

import ctypes
import errno
import json
import mmap
import os
import socket
import sys
from pathlib import Path

FOLDERS = "/etc", "/usr/bin", "/var/lib", "/home", "/run", "/run/lock", "/dev/shm"
NEW_USER_NAMESPACE, ROUND_ROBIN = 0x10000000, 2
library = ctypes.CDLL(None, use_errno=True)


def outcome(attempt):
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    return "done"


def call(name, *arguments):
    if getattr(library, name)(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)


def write(folder):
    (Path(folder) / "confined").write_text("")


attempts = {
    "a Bluetooth socket": lambda: socket.socket(31, socket.SOCK_RAW, 1),
    "a file in its own /tmp": lambda: write("/tmp"),
    "an IPv4 socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
    "an IPv6 socket": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "a netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    **{f"a file in {folder}": lambda folder=folder: write(folder) for folder in FOLDERS},
    "a namespace": lambda: call("unshare", NEW_USER_NAMESPACE),
    "a mount": lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "memory to write and to execute": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "the clock": lambda: call("settimeofday", ctypes.byref(ctypes.create_string_buffer(16)), None),
    "a real-time rank": lambda: os.sched_setscheduler(0, ROUND_ROBIN, os.sched_param(1)),
    "the kernel's memory": lambda: open("/dev/mem", "rb"),
    "a device": lambda: open("/dev/vhci", "rb"),
    "a setting of the kernel": lambda: open("/proc/sys/kernel/modprobe", "w"),
}
status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
json.dump({
    "attempts": {name: outcome(attempt) for name, attempt in attempts.items()},
    "read-only": {folder: bool(os.statvfs(folder).f_flag & os.ST_RDONLY) for folder in FOLDERS},
    "processes": sorted(name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()),
    "rights": {name: status[name].strip() for name in ("Uid", "CapBnd", "CapEff", "NoNewPrivs", "Seccomp")},
}, sys.stdout)

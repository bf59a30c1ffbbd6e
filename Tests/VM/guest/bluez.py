"""BlueZ as the peer: bluetoothd on hci1, on a private message bus, with a GATT application that bluetoothctl serves.

`Peer` starts it all and waits until it advertises; `Peer.stop()` ends it. bluetoothd takes every existing adapter, ours
too; most machines run it, and it must not disturb this library. `Daemon` is bluetoothd alone, on the adapter under test.
"""

import fcntl
import os
import selectors
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

TOOLS = Path(os.environ.get("VM_TOOLS", "/"))
BUS = "/run/vm/bus"
LOG = "/run/vm/bluez.log"
DAEMON = ("bluetoothd", "--nodetach", "--debug", "--noplugin=*")
SERVES = "Entering main loop"  # what bluetoothd prints, with --debug, when it begins to answer
NAME = "BlueZ-Bench"
ADAPTER = 1  # hci1
HCI_GET_DEVICE_INFO = 0x800448D3
WAIT = 120  # seconds for an answer, on a host that may be busy
SERVICE = "b1e5a000-7d1c-4f0a-9c3e-2a5b6c7d8e9f"
VALUE = "b1e5a001-7d1c-4f0a-9c3e-2a5b6c7d8e9f"
LONG = "b1e5a002-7d1c-4f0a-9c3e-2a5b6c7d8e9f"
COMMAND = "b1e5a003-7d1c-4f0a-9c3e-2a5b6c7d8e9f"
BUS_CONFIGURATION = f"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type><listen>unix:path={BUS}</listen><auth>EXTERNAL</auth>
  <policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow eavesdrop="true"/></policy>
</busconfig>
"""


def program(name):
    """Returns the path of one of BlueZ's programs: unpacked in the cache, or installed."""
    for folder in ("usr/bin", "usr/sbin", "usr/libexec/bluetooth", "usr/lib/bluetooth"):
        for root in (TOOLS, Path("/")):
            if (path := root / folder / name).exists():
                return str(path)
    return shutil.which(name) or name


def environment():
    libraries = [str(p) for p in (TOOLS / "usr/lib/x86_64-linux-gnu", TOOLS / "lib/x86_64-linux-gnu") if p.exists()]
    return {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={BUS}", "LD_LIBRARY_PATH": ":".join(libraries), "TERM": "dumb"}


def address(index):
    """Returns the address of an adapter."""
    request = bytearray(struct.pack("<H", index) + bytes(90))
    with socket.socket(31, socket.SOCK_RAW, 1) as control:
        fcntl.ioctl(control, HCI_GET_DEVICE_INFO, request)
    return request[10:16][::-1].hex(":").upper()


class Daemon:
    """bluetoothd and its message bus, beside the program under test; it has the adapter hci0 when this is entered."""

    def __init__(self):
        self.out = open("/run/vm/bluez-beside.log", "w")
        self.children = []

    def launch(self, name, *arguments):
        self.children.append(subprocess.Popen(
            [program(name), *arguments], stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.out, env=environment()))
        return self.children[-1]

    def __enter__(self):
        Path(BUS).unlink(missing_ok=True)
        Path("/run/vm/bus.conf").write_text(BUS_CONFIGURATION)
        try:
            self.launch("dbus-daemon", "--nofork", "--nopidfile", "--config-file=/run/vm/bus.conf")
            Peer.until(lambda: os.path.exists(BUS), "the message bus did not start")
            self.bluetoothd = self.launch(*DAEMON)
            Peer.until(
                lambda: "hci0 registered" in Path(self.out.name).read_text(errors="replace"), "bluetoothd has no adapter")
        except Exception:
            self.__exit__()
            raise
        return self

    def stop(self):
        """Ends bluetoothd as its service manager does. It may leave the adapter off."""
        self.bluetoothd.terminate()
        self.bluetoothd.wait(WAIT)

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.kill()
            child.wait()
        self.out.close()


class Peer:
    def __init__(self):
        self.address = address(ADAPTER)
        Path("/run/vm/bus.conf").write_text(BUS_CONFIGURATION)
        self.log = open(LOG, "w")
        self.children = []
        self.launch("dbus-daemon", "--nofork", "--nopidfile", "--config-file=/run/vm/bus.conf")
        self.until(lambda: os.path.exists(BUS), "the message bus did not start")
        self.daemon = self.launch(*DAEMON)
        # bluetoothd does not answer a call that arrives while it requests its name, and bluetoothctl calls only once.
        self.until(lambda: SERVES in Path(LOG).read_text(errors="replace"), "bluetoothd did not start")
        self.shell = subprocess.Popen(
            [program("bluetoothctl")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment())
        os.set_blocking(self.shell.stdout.fileno(), False)
        self.children.append(self.shell)
        self.heard = ""
        self.set_up()

    def launch(self, name, *arguments):
        child = subprocess.Popen(
            [program(name), *arguments], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment())
        self.children.append(child)
        return child

    @staticmethod
    def until(true, why, seconds=WAIT):
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                raise TimeoutError(why)
            time.sleep(0.02)

    def expect(self, *texts, seconds=WAIT):
        """Reads the output of bluetoothctl until one of the texts appears after what was expected before."""
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.shell.stdout, selectors.EVENT_READ)
            while True:
                found = [self.heard.find(text) + len(text) for text in texts if text in self.heard]
                if found:
                    self.heard = self.heard[min(found):]
                    return
                if time.monotonic() > end or self.shell.poll() is not None:
                    raise TimeoutError(f"bluetoothctl did not say {' or '.join(texts)} but {self.heard[-400:]!r}")
                if selector.select(0.5):
                    piece = (self.shell.stdout.read() or b"").decode(errors="replace")
                    self.log.write(piece)
                    self.log.flush()
                    self.heard += piece

    def say(self, line, *answers, seconds=WAIT):
        self.shell.stdin.write(line.encode() + b"\n")
        self.shell.stdin.flush()
        if answers:
            self.expect(*answers, seconds=seconds)

    def set_up(self):
        self.expect(f"Controller {self.address}")
        self.say(f"select {self.address}")
        self.say("power on", "Changing power on succeeded")
        self.say(f"system-alias {NAME}", "succeeded")
        self.say("menu gatt")
        self.say(f"register-service {SERVICE}", "(yes/no)")
        self.say("yes")
        # With write-without-response or notify, bluetoothd passes values through descriptors and bluetoothctl does not
        # store them; so the value that must be stored has neither.
        self.say(f"register-characteristic {VALUE} read,write,indicate", "Enter value")
        self.say("0x01 0x02 0x03")
        self.say(f"register-characteristic {LONG} read,write", "Enter value")
        self.say(" ".join(f"0x{byte & 255:02x}" for byte in range(512)))
        self.say(f"register-characteristic {COMMAND} write-without-response", "Enter value")
        self.say("0x00")
        self.say("register-application", "Application registered")
        self.say("back")
        self.say("menu advertise")
        self.say(f"name {NAME}")
        self.say("uuids 180f")
        self.say("back")
        self.say("advertise on", "Advertising object registered")

    def has_printed(self, text):
        """Returns whether bluetoothctl has printed this since it started to advertise."""
        self.heard += (self.shell.stdout.read() or b"").decode(errors="replace")
        return text in self.heard

    def stop(self):
        for child in reversed(self.children):
            child.kill()
            child.wait()


if __name__ == "__main__":
    peer = Peer()
    print("BlueZ advertises")

"""The common parts of the kernel tests: running blescan in the guest, reporting results, and switching adapters.

A test is a function with @test; it passes by returning, optionally with a figure to show. @row names the rows of the fault
catalogue that it shows. `main` runs a module's tests
in the order in which they are written, each on an adapter that is up, and prints one line for each: `ok NAME`, or `not
ok NAME: why`.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

BLESCAN = os.environ.get("BLESCAN", "blescan")
DONE, NOT_FOUND, USAGE, NO_ADAPTER, LINK_LOST, TIMED_OUT, REFUSED, NOT_PERMITTED = 0, 1, 64, 69, 74, 75, 76, 77
HCI_UP, HCI_DOWN, HCI_INFORMATION, HCI_CONNECTIONS = 0x400448C9, 0x400448CA, 0x800448D3, 0x800448D4
PULSE, SECOND, LIGHTHOUSE = "D1:00:00:00:00:01/random", "00:1A:7D:5E:C0:02/public", "D1:00:00:00:00:03/random"
NOBODY = "DE:AD:BE:EF:00:01/random"
PLAIN_USER, CAPABILITY = 65534, "net_raw"
PATIENCE = 300  # seconds after which a hanging program is ended; the guest is slow, and the host may be busy
UNKILLABLE = 120  # seconds after which a program that was killed must have ended
WAIT = int(os.environ.get("VM_WAIT", "120"))  # seconds that a test waits for an expected event; no test passes or fails by the time that it took
STUCK = 480 + 2 * int(os.environ.get("VM_CYCLES", "100"))  # seconds after which a test does not end any more
ENOUGH = 6  # failed tests, after which the rest of a module is left
vendor = "b1e5{:04x}-7d1c-4f0a-9c3e-2a5b6c7d8e9f".format
tests = []


def test(function):
    tests.append(function)
    return function


def row(*rows):
    """Names rows of Tests/Catalogue, as literals: Tests/Tools/list-reliability reads them from the sources."""
    def decorate(function):
        function.rows = rows
        return function
    return decorate


class Outcome:
    """The output and the status of a finished program."""

    def __init__(self, command, status, out, err, seconds):
        self.command, self.status, self.out, self.err, self.seconds = command, status, out, err, seconds

    @property
    def objects(self):
        try:
            return [json.loads(line) for line in self.out.splitlines() if line.strip()]
        except ValueError as error:
            raise AssertionError(f"not one JSON object a line ({error}): {self.tail}") from None

    @property
    def values(self):
        return [bytes.fromhex(o["hex"]) for o in self.objects if "hex" in o]

    @property
    def tail(self):
        return f"`{shlex.join(self.command)[:160]}` ended with {self.status}; out: {self.out[-300:]!r}; err: {self.err[-500:]!r}"

    def must(self, status):
        if self.status != status:
            raise AssertionError(f"expected status {status}: {self.tail}")
        return self


class Program:
    """A program, blescan by default, that runs in parallel with the test. Its output can be waited for."""

    launched = []  # by the test that runs

    def __init__(
            self, *arguments, program=BLESCAN, user=None, capabilities=(), timeout=PATIENCE, stdin=subprocess.DEVNULL, **more):
        self.command = [Path(program).name, *arguments]
        launch = [program, *arguments]
        if user is not None:
            wanted = ",".join(f"+{c}" for c in capabilities)
            raised = [f"--inh-caps={wanted}", f"--ambient-caps={wanted}"] if wanted else []
            launch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *raised, *launch]
        self.began = time.monotonic()
        self.child = subprocess.Popen(
            launch, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **more)
        self.lines, self.errors = [], []
        self.changed = threading.Condition()
        self.readers = [
            threading.Thread(target=self.collect, args=pair, daemon=True)
            for pair in ((self.child.stdout, self.lines), (self.child.stderr, self.errors))]
        for reader in self.readers:
            reader.start()
        self.timer = threading.Timer(timeout, self.end_for_certain)
        # The tests may end before it.
        self.timer.daemon = True
        self.timer.start()
        Program.launched.append(self)

    def collect(self, stream, lines):
        with stream:
            for line in stream:
                with self.changed:
                    lines.append(line)
                    self.changed.notify_all()

    def wait_for_lines(self, count, seconds=WAIT):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.lines) >= count, seconds):
                raise AssertionError(f"{len(self.lines)} of {count} lines in {seconds} s: {self.command} {self.errors[-3:]}")
        return self

    def wait_for(self, true, what, seconds=WAIT):
        """Waits until the lines so far satisfy `true`."""
        end = time.monotonic() + seconds
        while True:
            has_ended = self.child.poll() is not None and not any(reader.is_alive() for reader in self.readers)
            with self.changed:
                if true([line.rstrip("\n") for line in self.lines]):
                    return self
                if has_ended or time.monotonic() > end:
                    raise AssertionError(
                        f"{what}: not in {seconds} s: {self.command} {self.lines[-5:]} {self.errors[-3:]}; its threads are in "
                        f"{where(self.child.pid)}")
                self.changed.wait(0.5)

    def wait_to_hear(self, *peers):
        """Waits for a line about each of these peers; the order in which they are received is random."""
        addresses = [peer.split("/")[0] for peer in peers]
        return self.wait_for(
            lambda lines: all(any(address in line for line in lines) for address in addresses), f"a line of {addresses}")

    def end_for_certain(self):
        """Kills the program. No program outlives that by a fault of its own: if this one does, the kernel has one."""
        self.child.kill()
        end = time.monotonic() + UNKILLABLE
        while self.child.returncode is None and state_of(self.child.pid) not in ("", "Z"):
            if time.monotonic() > end:
                end_the_guest(f"{self.command} was killed {UNKILLABLE} s ago and is there: {where(self.child.pid)}")
            time.sleep(1)

    def finish(self):
        status = self.child.wait()
        self.timer.cancel()
        for reader in self.readers:
            reader.join(5)
        return Outcome(self.command, status, "".join(self.lines), "".join(self.errors), time.monotonic() - self.began)

    @classmethod
    def end_all(cls):
        """Ends what a failed test has left: it would keep the adapter, and the next tests would wait for that."""
        for program in cls.launched:
            program.timer.cancel()
            program.end_for_certain()
            program.child.wait()
        cls.launched.clear()

    def interrupt(self):
        self.child.send_signal(2)
        return self.finish()


def state_of(process):
    """Returns the state of a process as proc(5) abbreviates it; empty if there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def where(process):
    """Returns the functions of the kernel in which the threads of a process wait."""
    found = []
    for stack in Path(f"/proc/{process}/task").glob("*/stack"):
        with contextlib.suppress(OSError):
            found.append(" < ".join(re.findall(r"\] (\w+)", stack.read_text())[:12]))
    return "; ".join(sorted(set(found))) or "unknown"


def end_the_guest(*why):
    """Makes the guest's kernel panic, as it does by itself after a fault that it finds: the bed boots another one."""
    with open("/dev/kmsg", "w", buffering=1) as log:
        for line in ("something other than the programs under test is at fault:", *why):
            log.write(f"<2>{line[:800]}\n")
    Path("/proc/sysrq-trigger").write_text("c")


def end_what_is_stuck(name, thread):
    """Reports a test that does not end. No program is waited for that long, so it is the kernel, the emulator or the test."""
    stack = traceback.extract_stack(sys._current_frames()[thread.ident])
    programs = [program for program in Program.launched if program.child.returncode is None]
    end_the_guest(
        f"`{name}` has not ended after {STUCK} s",
        "it is at " + " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(stack)),
        *(f"{program.command} waits in {where(program.child.pid)}" for program in programs))


def blescan(*arguments, **more):
    return Program(*arguments, **more).finish()


def radio(command):
    with open(os.environ["VM_RADIO"], "w") as pipe:
        pipe.write(command + "\n")


def reported(index):
    """Returns the state that the virtual controller reports."""
    report = Path(f"/run/vm/peers/hci{index}.json")
    report.unlink(missing_ok=True)
    radio(f"show {index}")
    until(report.exists, "the radio does not report")
    return json.loads(report.read_text())


def doing(index=0):
    """Returns whether the virtual controller scans or connects, and its links."""
    state = reported(index)
    return {key: state[key] for key in ("scanning", "connecting", "links")}


def advertising(index=0):
    """Returns whether the virtual controller advertises, and how often it was commanded to begin."""
    state = reported(index)
    return state["advertising"], state["begun"]


def adapters():
    return sorted(p.name for p in Path("/sys/class/bluetooth").glob("hci*") if ":" not in p.name)


def until(true, why, seconds=WAIT):
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError(why)
        time.sleep(0.05)


def control(request, index=0):
    """Switches an adapter on or off; succeeds if it already is."""
    with socket.socket(31, socket.SOCK_RAW, 1) as control_socket:
        try:
            fcntl.ioctl(control_socket, request, index)
        except OSError as error:
            if error.errno != errno.EALREADY:
                raise


CONNECTED = 1  # the state of a link that the kernel has set up


def link_states(index=0):
    """Returns the states of an adapter's links, as the kernel numbers them."""
    connections = bytearray(struct.pack("<HH", index, 16) + bytes(16 * 16))
    with socket.socket(31, socket.SOCK_RAW, 1) as raw:
        fcntl.ioctl(raw, HCI_CONNECTIONS, connections)
    count, = struct.unpack_from("<H", connections, 2)
    return [struct.unpack_from("<H", connections, 4 + 16 * each + 10)[0] for each in range(count)]


def inject_write_command(attribute, value, index=0):
    """Writes to the peer on the link that another program holds, without that program, as the kernel's raw socket
    allows.
    """
    connections = bytearray(struct.pack("<HH", index, 4) + bytes(64))
    with socket.socket(31, socket.SOCK_RAW, 1) as raw:
        fcntl.ioctl(raw, HCI_CONNECTIONS, connections)
        if not struct.unpack_from("<H", connections, 2)[0]:
            return
        handle = struct.unpack_from("<H", connections, 4)[0]
        command = struct.pack("<BH", 0x52, attribute) + value
        data = struct.pack("<HH", len(command), 4) + command
        bind_to_adapter(raw, index)
        raw.send(struct.pack("<BHH", 2, handle, len(data)) + data)


def bind_to_adapter(raw, index, channel=0):
    # Python's own bind accepts only the adapter's number, but the kernel also requires a channel.
    name = struct.pack("<HHH", 31, index, channel)
    if ctypes.CDLL(None, use_errno=True).bind(raw.fileno(), name, len(name)) != 0:
        raise OSError(ctypes.get_errno(), "bind")


class Management:
    """The kernel's management interface, as another program uses it."""

    CHANNEL, NO_DEVICE, COMPLETE, STATUS = 3, 0xFFFF, 1, 2
    ADD_ADVERTISING, REMOVE_ADVERTISING, INVALID_PARAMETERS = 0x3E, 0x3F, 0x0D
    INSTANCE_CHANGES = {0x23: "added", 0x24: "removed"}

    def __init__(self):
        self.socket = socket.socket(31, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 1)
        bind_to_adapter(self.socket, self.NO_DEVICE, self.CHANNEL)
        self.socket.settimeout(WAIT)

    def command(self, code, parameters=b"", index=0):
        """Returns the status of a command, and what it returns."""
        self.socket.send(struct.pack("<HHH", code, index, len(parameters)) + parameters)
        while True:
            event = self.socket.recv(4096)
            if len(event) < 9:  # an event about an advertising instance, or about an adapter
                continue
            kind, _, _, command = struct.unpack_from("<HHHH", event)
            if kind in (self.COMPLETE, self.STATUS) and command == code:
                return event[8], event[9:]

    def instance_changes(self):
        """Returns what other programs have done to advertising instances, and their numbers, as far as it was not read.

        Read Advertising Features does not list a number that is greater than the number of instances.
        """
        events = [(self.INSTANCE_CHANGES.get(code), parameters[:1]) for code, parameters in self.events()]
        return [(change, number[0]) for change, number in events if change]

    def remove_instance(self, number, expected=0):
        """Removes an advertising instance; the status is INVALID_PARAMETERS if there is none."""
        same(self.command(self.REMOVE_ADVERTISING, bytes([number]))[0], expected, "status of the removal")

    def events(self):
        """Returns the events that wait, each as its code and its parameters."""
        found = []
        self.socket.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                event = self.socket.recv(4096)
                found.append((struct.unpack_from("<H", event)[0], event[6:]))
        self.socket.settimeout(WAIT)
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class Monitor:
    """The kernel's monitor: it shows the management commands of every program."""

    CHANNEL, NO_DEVICE, COMMAND = 2, 0xFFFF, 16

    def __init__(self):
        self.socket = socket.socket(31, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 1)
        bind_to_adapter(self.socket, self.NO_DEVICE, self.CHANNEL)
        self.socket.settimeout(0)
        self.found = []

    def commands(self):
        """Returns the codes of the commands since the monitor was opened."""
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = self.socket.recv(4096)
                if struct.unpack_from("<H", packet)[0] == self.COMMAND:
                    self.found.append(struct.unpack_from("<H", packet, 10)[0])
        return self.found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class CommandSocket:
    """A raw socket, as another program has it: it sends commands, and sees those of all others."""

    COMMAND = 1

    def __init__(self, index=0):
        self.socket = socket.socket(31, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 1)
        self.socket.setsockopt(0, 2, struct.pack("<IIIHxx", 1 << self.COMMAND, 0, 0, 0))
        bind_to_adapter(self.socket, index)
        self.socket.settimeout(WAIT)

    def send(self, opcode, parameters=b""):
        self.socket.send(struct.pack("<BHB", self.COMMAND, opcode, len(parameters)) + parameters)

    def next(self, opcode):
        """Waits for the next such command of another program, and returns its parameters."""
        while True:
            packet = self.socket.recv(300)
            if struct.unpack_from("<H", packet, 1)[0] == opcode:
                return packet[4:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


class ChannelTaker:
    """Takes the ATT channel of links that another program has created by command, as bluetoothd does if it is faster.

    The kernel assigns the channel to a listening socket if the program has not attached yet, so the program is delayed
    meanwhile.
    """

    def __init__(self, index=0):
        self.taken = []
        information = bytearray(struct.pack("<H", index) + bytes(90))
        with socket.socket(31, socket.SOCK_RAW, 1) as control_socket:
            fcntl.ioctl(control_socket, HCI_INFORMATION, information)
        self.listener = socket.socket(31, socket.SOCK_SEQPACKET, 0)
        # Python's own bind and accept support neither channels nor their addresses.
        self.library = ctypes.CDLL(None, use_errno=True)
        name = struct.pack("<HH6sHBx", 31, 0, bytes(information[10:16]), 4, 1)
        if self.library.bind(self.listener.fileno(), name, len(name)) != 0:
            raise OSError(ctypes.get_errno(), "bind")
        self.listener.listen(8)
        self.listener.settimeout(0)
        self.events = socket.socket(31, socket.SOCK_RAW, 1)
        self.events.setsockopt(0, 2, struct.pack("<IIIHxx", 1 << 4, 1 << 15, 0, 0))  # Command Status only
        bind_to_adapter(self.events, index)
        self.events.settimeout(0.2)

    def rob(self, program, count):
        """Takes the channels of so many links of a program, or of as many as it creates."""
        while len(self.taken) < count and program.child.poll() is None:
            try:
                event = self.events.recv(64)
            except TimeoutError:
                continue
            if event[3] == 0 and struct.unpack_from("<H", event, 5)[0] in (0x200D, 0x2043):
                program.child.send_signal(signal.SIGSTOP)
                end = time.monotonic() + 5
                while not self.take() and time.monotonic() < end:
                    time.sleep(0.01)
                program.child.send_signal(signal.SIGCONT)
        return program

    def take(self):
        accepted = self.library.accept(self.listener.fileno(), None, None)
        if accepted >= 0:
            self.taken.append(accepted)
        return accepted >= 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.events.close()
        for descriptor in self.taken:
            os.close(descriptor)


def kernel_release():
    return tuple(int(number) for number in os.uname().release.split("-")[0].split("+")[0].split(".")[:2])


def rfkill_switches(index=0):
    return list(Path(f"/sys/class/bluetooth/hci{index}").glob("rfkill*/soft"))


def same(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def first_of(objects, address):
    mine = [o for o in objects if o.get("address", "").startswith(address.split("/")[0])]
    if not mine:
        raise AssertionError(f"nothing heard of {address} among {len(objects)} reports")
    return mine


def merged(objects, address, *keys):
    """The last value of each key over all reports of one peer: name and services may come in different reports."""
    reports = first_of(objects, address)
    return {key: next((o[key] for o in reversed(reports) if o.get(key) not in (None, [], {})), None) for key in keys}


def names_heard(peer, seconds):
    """The names under which a peer is heard from the second adapter."""
    outcome = blescan("scan", "--each", "packet", "--for", f"{seconds}s", "--adapter", "hci1", "--json").must(DONE)
    own = [o for o in outcome.objects if o.get("address") == peer.split("/")[0]]
    return {o["localName"] for o in own if o.get("localName")}


def heard_of(wanted, *arguments, **more):
    """Returns the reports of a running scan once each peer of `wanted` has reported all of its keys."""
    def is_complete(lines):
        objects = [json.loads(line) for line in lines]
        return all(
            any(o.get("address", "").startswith(peer.split("/")[0]) for o in objects)
            and None not in merged(objects, peer, *keys).values() for peer, keys in wanted.items())
    scan = Program("scan", "--json", *arguments, **more).wait_for(is_complete, f"all of {wanted}")
    return scan.interrupt().must(DONE).objects


def tree(peer):
    """Returns the attributes of Bumble's server as rows with handle, type, end, uuid and properties."""
    return json.loads(Path(f"/run/vm/peers/{peer}.json").read_text())


def noted(path, start):
    """Returns what a peripheral has noted in its log since that had this size, but for the line that was being written then."""
    with open(path, "rb") as log:
        log.seek(max(start - 1, 0))
        text = log.read()
    # A line that is being written may be there in part. An iteration over the lines would go on with its rest, as if that were one.
    first = text.find(b"\n") + 1 if start else 0
    return [json.loads(line) for line in text[first:text.rfind(b"\n") + 1].splitlines()]


class KernelLog:
    """What the kernel says of Bluetooth from now on: when a test fails, its cause is often there."""

    def __init__(self):
        self.descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.lseek(self.descriptor, 0, os.SEEK_END)

    def lines(self):
        """Returns the lines since the last call."""
        found = []
        while True:
            try:
                record = os.read(self.descriptor, 8192)
            except BlockingIOError:
                return found
            except BrokenPipeError:
                continue  # lines were overwritten
            facts, _, text = record.decode(errors="replace").partition(";")
            text = text.splitlines()[0] if text else ""
            if "Bluetooth" in text:
                found.append(f"{int(facts.split(',')[2]) / 1e6:.1f} s: {text}")


def main(before=lambda: None):
    """Runs the tests that the command line names, or all; each after `before`."""
    wanted = sys.argv[1:]
    failed = 0
    log = KernelLog()
    for function in tests:
        name = function.__name__.replace("_", " ")
        if wanted and function.__name__ not in wanted:
            continue
        if failed == ENOUGH:
            # Each may have waited for minutes, and has the cause of those before it.
            print(f"not ok {name} and what follows: not performed after {failed} failures", flush=True)
            break
        began = time.monotonic()
        log.lines()
        Program.launched.clear()
        # The report shows where the test stands.
        stuck = threading.Timer(STUCK, end_what_is_stuck, (name, threading.main_thread()))
        stuck.daemon = True
        stuck.start()
        try:
            if adapters()[:1] == ["hci0"]:
                control(HCI_UP)
            before()
            figures = function()
            print(f"ok {name}{f': {figures}' if figures else ''} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:
            failed += 1
            why = str(error) if isinstance(error, AssertionError) else "".join(traceback.format_exception(error)[-3:])
            rows = f" ({', '.join(function.rows)})" if hasattr(function, "rows") else ""
            said = log.lines()
            kernel = f" [the kernel, at {time.monotonic():.1f} s: {'; '.join(said[-8:])}]" if said else ""
            print(f"not ok {name}{rows}: {' '.join(why.split())}{kernel}", flush=True)
            Program.end_all()
        finally:
            stuck.cancel()
    sys.exit(1 if failed else 0)

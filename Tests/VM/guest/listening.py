"""Listening L2CAP sockets and raw advertising, as any program without a library uses them: what the kernel does."""

import ctypes
import os
import select
import socket
import struct
import time

from harness import bind_to_adapter

LIBRARY = ctypes.CDLL(None, use_errno=True)
ATT, LE_PUBLIC, LE_RANDOM = 4, 1, 2
BLUETOOTH, SECURITY, SEND_MTU, RECEIVE_MTU = 274, 4, 12, 13  # a level of socket options, and options of it
SO_RXQ_OVFL = 40


def checked(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


def name_of(address, channel=ATT, kind=LE_PUBLIC):
    """The name of a socket: a channel of this device."""
    return struct.pack("<HH6sHBx", 31, 0, bytes.fromhex(address.replace(":", ""))[::-1], channel, kind)


def bound(own, channel=ATT):
    """Returns a socket that is bound to a channel of an adapter."""
    made = socket.socket(31, socket.SOCK_SEQPACKET, 0)
    name = name_of(own, channel)
    try:
        checked(LIBRARY.bind(made.fileno(), name, len(name)), "bind")
    except OSError:
        made.close()
        raise
    return made


def refusal(work, *arguments):
    """Returns the number of the error with which the kernel refuses something; 0 if it does not."""
    try:
        work(*arguments)
    except OSError as error:
        return error.errno
    return 0


def connect(own, peer, kind):
    """Connects to the attributes of a peer, and disconnects."""
    with bound(own) as made:
        name = name_of(peer, kind=kind)
        checked(LIBRARY.connect(made.fileno(), name, len(name)), "connect")


class Link:
    """An accepted link."""

    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)
        self.socket.settimeout(60)

    @property
    def handle(self):
        """The controller's number of the link."""
        return struct.unpack_from("<H", self.socket.getsockopt(6, 2, 5))[0]  # SOL_L2CAP, L2CAP_CONNINFO

    @property
    def peer(self):
        """The address by which the kernel knows the central, and its type."""
        name, size = ctypes.create_string_buffer(14), ctypes.c_uint32(14)
        checked(LIBRARY.getpeername(self.socket.fileno(), name, ctypes.byref(size)), "getpeername")
        return name.raw[4:10][::-1].hex(":").upper(), name.raw[12]

    def has_ended(self):
        poll = select.poll()
        poll.register(self.socket.fileno(), 0)
        return any(state & select.POLLHUP for _, state in poll.poll(0))

    def wait_for_end(self, seconds=60):
        """Returns how long the link has gone on."""
        began = time.monotonic()
        while not self.has_ended():
            if time.monotonic() - began > seconds:
                raise AssertionError(f"the link goes on for {seconds} s")
            time.sleep(0.01)
        return time.monotonic() - began

    def close(self):
        self.socket.close()


class Listener:
    """A socket that accepts the links of an adapter."""

    def __init__(self, own="00:00:00:00:00:00", backlog=8):
        self.socket = bound(own)
        self.socket.listen(backlog)

    def accept(self, seconds=60):
        """Returns the next link; `None` if none comes."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return None
        return Link(checked(LIBRARY.accept(self.socket.fileno(), None, None), "accept"))

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Controller:
    """An adapter's raw HCI socket, for commands."""

    def __init__(self, index=0):
        self.socket = socket.socket(31, socket.SOCK_RAW, 1)
        self.socket.setsockopt(0, 2, struct.pack("<IIIHxx", 1 << 4, 1 << 14 | 1 << 15, 0, 0))  # Command Complete and Status only
        bind_to_adapter(self.socket, index)
        self.socket.settimeout(60)

    def command(self, opcode, parameters=b""):
        """Returns the status."""
        self.socket.send(struct.pack("<BHB", 1, opcode, len(parameters)) + parameters)
        while True:
            event = self.socket.recv(300)
            if event[1] == 0x0E and struct.unpack_from("<H", event, 4)[0] == opcode:
                return event[6]
            if event[1] == 0x0F and struct.unpack_from("<H", event, 5)[0] == opcode:
                return event[3]

    def advertise(self):
        """Advertises with the public address, in place of everybody else, so that others can connect, until one has."""
        self.command(0x2039, b"\0\0")
        self.command(0x203D)
        parameters = struct.pack("<BH", 0xE8, 0x13) + b"\xA0\0\0" * 2 + b"\7\0" + bytes(7) + b"\0\x7F\1\0\1\0\0"
        for opcode, content in ((0x2036, parameters), (0x2037, b"\xE8\3\1\3\2\1\6"), (0x2039, b"\1\1\xE8\0\0\0")):
            status = self.command(opcode, content)
            if status:
                raise AssertionError(f"command {opcode:#x} was refused: {status:#x}")

    def stop(self):
        self.command(0x2039, b"\0\0")
        self.command(0x203D)

    def connect(self, peer):
        """Begins to connect to a device with a random address, without the kernel."""
        address = bytes.fromhex(peer.replace(":", ""))[::-1]
        # With LE 1M: scan interval and window, connection interval, latency, supervision time-out, lengths of events.
        parameters = b"\0\0\1" + address + b"\1" + struct.pack("<8H", 96, 96, 24, 40, 0, 300, 0, 0)
        status = self.command(0x2043, parameters)
        if status:
            raise AssertionError(f"LE Extended Create Connection was refused: {status:#x}")

    def disconnect(self, handle):
        return self.command(0x0406, struct.pack("<HB", handle, 0x13))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

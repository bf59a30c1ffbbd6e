"""The recorded session: scan actively for two seconds and on, connect to the belt, discover it, read, write, subscribe.

Python's standard library over the kernel's sockets; btmon records what passes.
"""
import ctypes
import fcntl
import os
import select
import socket
import struct
import time

libc = ctypes.CDLL(None, use_errno=True)
AF, HCI, L2CAP = 31, 1, 0
BELT = 'C3:5A:19:0B:7E:21'


def call(name, sock, packed):
    if getattr(libc, name)(sock.fileno(), packed, len(packed)) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def wait(sock, seconds, events=select.POLLIN):
    poll = select.poll()
    poll.register(sock, events)
    return poll.poll(max(0, seconds * 1000))


def address(text, kind):
    return struct.pack('<HH6sHB', AF, 0, bytes.fromhex(text.replace(':', ''))[::-1], 4, kind) + b'\0'


control = socket.socket(AF, socket.SOCK_RAW, HCI)
try:
    fcntl.ioctl(control, 0x400448C9, 0)
except OSError as error:
    if error.errno != 114:
        raise
raw = socket.socket(AF, socket.SOCK_RAW | socket.SOCK_NONBLOCK, HCI)
call('bind', raw, struct.pack('<HHH', AF, 0, 0))
raw.setsockopt(0, 2, struct.pack('<IIIHxx', 1 << 4, 0xFFFFFFFF, 0xFFFFFFFF, 0))


def command(opcode, parameters=b''):
    raw.send(struct.pack('<BHB', 1, opcode, len(parameters)) + parameters)
    while wait(raw, 3):
        event = raw.recv(300)
        if event[:2] == b'\x04\x0e' and struct.unpack_from('<H', event, 4)[0] == opcode:
            return event[7:]
    raise TimeoutError(hex(opcode))


command(0x0C6D, b'\1\0')
own = command(0x1009)[::-1].hex(':').upper()
command(0x2041, struct.pack('<BBBBHH', 0, 0, 1, 1, 0x60, 0x60))
command(0x2042, b'\1\0\0\0\0\0')
end = time.monotonic() + 2
while wait(raw, end - time.monotonic()):
    raw.recv(300)
# The scan goes on: its reports find the belt for connect(), and the kernel stops it when the belt is heard.
link = socket.socket(AF, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK, L2CAP)
call('bind', link, address(own, 1))
try:
    call('connect', link, address(BELT, 2))
except BlockingIOError:
    pass
assert wait(link, 10, select.POLLOUT) and not link.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def request(*parts):
    link.send(b''.join(parts))
    while wait(link, 5):
        pdu = link.recv(600)
        if pdu[0] not in (0x1B, 0x1D):
            return pdu
    raise TimeoutError


def handles(*numbers):
    return struct.pack(f'<{len(numbers)}H', *numbers)


request(b'\x02', handles(247))
services, start = [], 1
while (pdu := request(b'\x10', handles(start, 0xFFFF, 0x2800)))[0] == 0x11:
    for at in range(2, len(pdu), pdu[1]):
        services.append(struct.unpack_from('<HH', pdu, at))
    start = services[-1][1] + 1
    if start > 0xFFFF:
        break
values, start = {}, 1
while (pdu := request(b'\x08', handles(start, 0xFFFF, 0x2803)))[0] == 0x09:
    for at in range(2, len(pdu), pdu[1]):
        handle, _, value = struct.unpack_from('<HBH', pdu, at)
        values[pdu[at + 5:at + pdu[1]].hex()] = value
        start = handle + 1
battery, heart, position, point = (values[u] for u in ('192a', '372a', '382a', '392a'))
log, owner = (values[u] for u in sorted(values) if len(u) == 32)
request(b'\x04', handles(heart + 1, heart + 1))
request(b'\x0a', handles(values['002a']))
request(b'\x0a', handles(battery))
request(b'\x0a', handles(position))
request(b'\x0a', handles(log))
request(b'\x0a', handles(owner))
request(b'\x0a', handles(0xFFF0))
request(b'\x12', handles(point), b'\1')
request(b'\x12', handles(heart + 1), b'\1\0')
end = time.monotonic() + 1.6
while wait(link, end - time.monotonic()):
    link.recv(600)
request(b'\x12', handles(heart + 1), b'\0\0')
link.close()
time.sleep(2.5)

"""Records a conversation with a peer on a Unix SEQPACKET socket as a .dialogue file on standard output.

    record.py SOCKET "title" "origin"

The client asks for what a visitor of a heart rate belt asks for; the peer decides every answer.
"""
import socket
import struct
import sys
import time

path, title, origin = sys.argv[1:4]
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect(path)
link.settimeout(5)
print(f'# {title}\ntest: own/{title.lower().replace(" ", "-").replace(",", "")}\norigin: {origin}\n')


def show(arrow, pdu):
    print(f'{arrow} {pdu[:1].hex()} {pdu[1:].hex()}'.rstrip())


def receive():
    pdu = link.recv(1024)
    show('>', pdu)
    return pdu


def request(opcode, *parts):
    pdu = bytes([opcode]) + b''.join(struct.pack('<H', p) if isinstance(p, int) else p for p in parts)
    show('<', pdu)
    link.send(pdu)
    while (answer := receive())[0] in (0x1B, 0x1D):
        pass
    return answer


def listed(opcode, kind):
    start, found = 1, []
    while start <= 0xFFFF and (answer := request(opcode, start, 0xFFFF, kind))[0] != 1:
        size = answer[1]
        found += [answer[at:at + size] for at in range(2, len(answer), size)]
        last = found[-1]
        start = 1 + (struct.unpack_from('<H', last, 2)[0] if opcode == 0x10 else struct.unpack_from('<H', last)[0])
    return found


request(0x02, 247)
listed(0x10, 0x2800)
values = {entry[5:].hex(): struct.unpack_from('<H', entry, 3)[0] for entry in listed(0x08, 0x2803)}
for kind in ('002a', '192a', '382a'):
    if kind in values:
        request(0x0A, values[kind])
heart = values['372a']
request(0x04, heart + 1, heart + 1)
request(0x12, heart + 1, b'\1\0')
for _ in range(3):
    receive()
request(0x12, heart + 1, b'\0\0')
request(0x0A, 0xFFF0)

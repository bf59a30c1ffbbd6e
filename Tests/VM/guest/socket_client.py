"""Bumble's GATT client on a Unix SEQPACKET socket, where a server has one PDU in each packet.

    socket_client.py SOCKET [ORDER]...

prints one JSON object a line: for `mtu N` the agreed MTU, for `explore` what the server has, for `read UUID` a value, for `write UUID
HEX` what is read after it, for `listen UUID COUNT` so many values. Each order is one argument.
"""

import asyncio
import json
import socket
import sys

from bumble import att
from bumble.gatt_client import Client

from gatt_checks import characteristic, explored, refused


class Bearer:
    """What Bumble's client needs of a link."""

    EVENT_DISCONNECTION = "disconnection"
    handle = 1

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(path)
        self.socket.setblocking(False)
        self.att_mtu = att.ATT_DEFAULT_MTU

    def on(self, event, listener):
        pass

    def on_att_mtu_update(self, mtu):
        self.att_mtu = mtu

    def send_l2cap_pdu(self, channel, pdu):
        self.socket.send(bytes(pdu))

    async def read(self, client):
        while pdu := await asyncio.get_running_loop().sock_recv(self.socket, 2048):
            client.on_gatt_pdu(att.ATT_PDU.from_bytes(pdu))


async def obey(client, order):
    match order.split():
        case ["mtu", size]:
            return await client.request_mtu(int(size))
        case ["explore"]:
            return await explored(client)
        case ["read", uuid]:
            return await refused(client.read_value(characteristic(client, uuid)))
        case ["write", uuid, value]:
            one = characteristic(client, uuid)
            await client.write_value(one, bytes.fromhex(value), with_response=True)
            return await refused(client.read_value(one))
        case ["listen", uuid, count]:
            values = asyncio.Queue()
            await client.subscribe(characteristic(client, uuid), values.put_nowait)
            return [(await values.get()).hex() for _ in range(int(count))]
    raise ValueError(order)


async def main(path, orders):
    bearer = Bearer(path)
    client = Client(bearer)
    reader = asyncio.ensure_future(bearer.read(client))
    for order in orders:
        print(json.dumps(await obey(client, order)), flush=True)
    reader.cancel()


asyncio.run(main(sys.argv[1], sys.argv[2:]))

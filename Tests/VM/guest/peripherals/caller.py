"""Five centrals: "Caller1" to "Caller5", D1:00:00:00:01:01/random and so on, which advertise nothing.

Each performs the orders of `tell CALLER {"id": NUMBER, "do": NAME, ...}` (radio.py), and notes what came of it as one JSON object a
line in /run/vm/peers/CALLER.log: the id with `result` or `error`. It counts the values that it receives, and keeps them.
"""

import asyncio
import json
import random
import struct

from bumble import att, hci
from bumble.core import ProtocolError

from common import PEERS, device
from gatt_checks import characteristic, explored, refused

ATT = 4
COUNT = 5


class Caller:
    def __init__(self, number):
        self.name, self.address = f"Caller{number}", f"D1:00:00:00:01:{number:02X}"
        self.log = open(PEERS / f"{self.name}.log", "w", buffering=1)
        self.connection = self.client = None
        self.values, self.packets, self.tasks, self.reasons = [], [], set(), []
        self.raw = None  # the channel whose packets are kept as they are, and get no response

    async def begin(self, air, controller_class, legacy):
        self.device, self.controller = await device(self.name, self.address, air, controller_class, legacy)
        channels = self.device.l2cap_channel_manager
        hear = channels.on_pdu

        def heard(connection, channel, packet):
            if channel == self.raw:
                self.packets.append(bytes(packet))
            else:
                hear(connection, channel, packet)

        channels.on_pdu = heard
        return self

    # Orders

    async def obey(self, text):
        order = json.loads(text)
        number, verb = order.pop("id"), order.pop("do")
        task = asyncio.ensure_future(self.work(number, getattr(self, f"do_{verb}")(**order)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def work(self, number, doing):
        try:
            outcome = {"result": await doing}
        except (att.ATT_Error, ProtocolError) as error:
            outcome = {"error": int(error.error_code)}
        except Exception as error:  # whatever it is belongs to the order
            outcome = {"error": repr(error)}
        except asyncio.CancelledError:
            outcome = {"error": "the link has ended"}
        self.log.write(json.dumps({"id": number, **outcome}) + "\n")

    async def do_connect(self, peer):
        self.raw, self.values, self.packets, self.reasons = None, [], [], []
        self.connection = await self.device.connect(
            hci.Address(peer, hci.Address.PUBLIC_DEVICE_ADDRESS), own_address_type=hci.OwnAddressType.RANDOM, timeout=100)
        self.connection.on("disconnection", self.reasons.append)
        self.client = self.connection.gatt_client

    async def do_disconnect(self):
        await self.connection.disconnect()

    async def do_ended(self):
        """Waits for the end of the link; the reason for it."""
        while not self.reasons:
            await asyncio.sleep(0.02)
        return int(self.reasons[0])

    async def do_drop(self, reason=8):
        """The link ends as if the other side were out of range."""
        self.controller.drop_links(reason)

    async def do_move(self, number):
        """Uses another private address, which nobody can resolve; without a number its own again."""
        address = hci.Address(self.address)
        if number is not None:
            address = hci.Address(bytes([number & 255, number >> 8, 0, 0, 0, 0x05]), hci.Address.RANDOM_DEVICE_ADDRESS)
        await self.device.send_sync_command(hci.HCI_LE_Set_Random_Address_Command(random_address=address))
        self.device.random_address = address

    async def do_hold(self, on):
        """Takes no packets from the air meanwhile."""
        self.controller.hold(on)

    # As a client

    async def do_mtu(self, size):
        return await self.client.request_mtu(size)

    async def do_explore(self):
        return await explored(self.client)

    async def do_discover(self):
        for service in await self.client.discover_services():
            for one in await service.discover_characteristics():
                await one.discover_descriptors()

    async def do_read(self, uuid):
        return await refused(self.client.read_value(characteristic(self.client, uuid)))

    async def do_write(self, uuid, value, response=True):
        await self.client.write_value(characteristic(self.client, uuid), bytes.fromhex(value), with_response=response)

    async def do_flood(self, uuid, count, value, then=None):
        """So many commands without a pause, and then a request."""
        one = characteristic(self.client, uuid)
        for number in range(count):
            await self.client.write_value(one, bytes.fromhex(value))
            if number % 64 == 63:
                await asyncio.sleep(0)
        if then:
            return await refused(self.client.read_value(characteristic(self.client, then)))

    async def do_subscribe(self, uuid):
        one = characteristic(self.client, uuid)
        await self.client.subscribe(one, lambda value: self.values.append(bytes(value)))

    async def do_received(self, count):
        """Waits for so many values; what they begin with as numbers, in short: how many there are, and the first that is out of order."""
        while len(self.values) < count:
            await asyncio.sleep(0.02)
        return self.summary()

    async def do_values(self):
        return [value.hex() for value in self.values]

    async def do_forget(self):
        self.values = []

    async def do_summary(self):
        return self.summary()

    def summary(self):
        numbers = [struct.unpack_from("<I", value)[0] for value in self.values]
        wrong = [[at, one, other] for at, (one, other) in enumerate(zip(numbers, numbers[1:])) if other <= one]
        return {"count": len(numbers), "distinct": len(set(numbers)), "last": numbers[-1] if numbers else None, "disorder": wrong[:3]}

    # As nobody should

    async def do_send(self, *, packets, channel=ATT, pause=0.3):
        """Sends packets as they are, and returns what comes back."""
        self.raw, self.packets = channel, []
        for packet in packets:
            self.connection.send_l2cap_pdu(channel, bytes.fromhex(packet))
        await asyncio.sleep(pause)
        self.raw = None
        return [packet.hex() for packet in self.packets]

    async def do_fuzz(self, seed, count, largest):
        """Sends random requests and commands, each request after the response to the one before; what was wrong."""
        numbers = random.Random(seed)
        self.raw, self.packets, wrong, requests = ATT, [], [], 0
        for _ in range(count):
            if self.reasons:
                wrong.append(f"the link ended: {int(self.reasons[0])}")
                break
            opcode = numbers.randrange(256)
            body = struct.pack("<H", numbers.choice([0, numbers.randrange(40), 0xFFFF])) + numbers.randbytes(numbers.randrange(largest - 2))
            packet = bytes([opcode]) + body[:numbers.randrange(largest)]
            # A command has a bit of its own.
            is_request = not opcode & 0x40 and opcode not in KNOWN_OTHERS
            if opcode == att.Opcode.ATT_EXCHANGE_MTU_REQUEST:
                continue
            self.packets.clear()
            self.connection.send_l2cap_pdu(ATT, packet)
            requests += is_request
            for _ in range(3000 if is_request else 2):
                if self.packets and is_request:
                    break
                await asyncio.sleep(0.01 if is_request else 0)
            mine = [each for each in self.packets if each[0] not in UNASKED]
            if len(mine) != is_request or any(len(each) > self.connection.att_mtu for each in mine):
                wrong.append(f"{packet.hex()}: {[each.hex() for each in mine]}")
        self.raw = None
        return {"requests": requests, "wrong": wrong[:5]}


# What a server sends without a request: values, and the confirmation of an indication, which a random packet may be.
UNASKED = {0x1B, 0x1E}
# What has no response: responses, values, and the confirmation.
KNOWN_OTHERS = {int(opcode) for opcode in att.Opcode if int(opcode) & 1} | {0x23, int(att.Opcode.ATT_HANDLE_VALUE_CONFIRMATION)}


async def start(air, controller_class, legacy):
    PEERS.mkdir(parents=True, exist_ok=True)
    return [await Caller(number).begin(air, controller_class, legacy) for number in range(1, COUNT + 1)]

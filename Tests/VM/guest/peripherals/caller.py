"""Five centrals: "Caller1" to "Caller5", D1:00:00:00:01:01/random and so on, which advertise nothing. They pair as their `manner` says,
and have a service of their own, for servers that are clients too.

Each performs the orders of `tell CALLER {"id": NUMBER, "do": NAME, ...}` (radio.py), and notes what came of it as one JSON object a
line in /run/vm/peers/CALLER.log: the id with `result` or `error`. It counts the values that it receives, and keeps them.
"""

import asyncio
import json
import random
import struct

from bumble import att, crypto, hci, smp
from bumble.core import ProtocolError
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.l2cap import LeCreditBasedChannelSpec
from bumble.pairing import PairingConfig, PairingDelegate

from common import PEERS, device
from gatt_checks import characteristic, explored, refused

ATT = 4
COUNT = 5
VALUES = {0x1B: "notification", 0x1D: "indication"}
Distributed = PairingDelegate.KeyDistribution


class User(PairingDelegate):
    """The user of a caller."""

    def __init__(self, caller):
        distribution = Distributed.DISTRIBUTE_ENCRYPTION_KEY | Distributed.DISTRIBUTE_IDENTITY_KEY
        if caller.manner["sign"]:
            distribution |= Distributed.DISTRIBUTE_SIGNING_KEY
        super().__init__(PairingDelegate.IoCapability(caller.manner["io"]), local_initiator_key_distribution=distribution)
        self.caller = caller

    async def compare_numbers(self, number, digits):
        self.caller.compared = number
        return True

    async def get_number(self):
        return await self.caller.typed.get()


class Session(smp.Session):
    """A session that distributes a signature key of its own; Bumble's is zero."""

    def send_command(self, command):
        if isinstance(command, smp.SMP_Signing_Information_Command):
            command = smp.SMP_Signing_Information_Command(signature_key=SIGNATURE_KEY)
        super().send_command(command)


class Caller:
    def __init__(self, number):
        self.number, self.name, self.address = number, f"Caller{number}", f"D1:00:00:00:01:{number:02X}"
        self.log = open(PEERS / f"{self.name}.log", "w", buffering=1)
        self.connection = self.client = None
        self.values, self.packets, self.tasks, self.reasons = [], [], set(), []
        self.manner = dict(MANNER)
        self.typed, self.compared = asyncio.Queue(), None
        self.unasked, self.requests = [], []  # each notification and indication, and each Security Request, of the link
        self.raw = None  # the channel whose packets are kept as they are, and get no response
        self.channels = []  # those that it has opened on this link, each with the packets that it has received
        self.asked, self.responding = 0, asyncio.Event()
        self.responding.set()

    async def begin(self, air, controller_class, legacy):
        own = Service("FFB0", [Characteristic(
            "FFB1", Characteristic.Properties.READ, Characteristic.READABLE, CharacteristicValue(read=self.own_value))])
        self.device, self.controller = await device(self.name, self.address, air, controller_class, legacy, [own])
        self.device.irk = bytes([self.number] * 16)
        self.device.smp_manager.session_proxy = Session
        self.device.pairing_config_factory = lambda _: PairingConfig(
            self.manner["sc"], self.manner["mitm"], True, User(self), PairingConfig.AddressType.RANDOM)
        self.device.on("connection", self.began)
        channels = self.device.l2cap_channel_manager
        hear = channels.on_pdu

        def heard(connection, channel, packet):
            if channel == ATT and packet[0] in VALUES:
                handle, = struct.unpack_from("<H", packet, 1)
                self.unasked.append([VALUES[packet[0]], handle, bytes(packet[3:]).hex(), bool(connection.is_encrypted)])
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
        self.raw, self.values, self.packets, self.reasons, self.unasked, self.requests = None, [], [], [], [], []
        self.channels = []
        await self.do_respond()
        await self.device.connect(
            hci.Address(peer, hci.Address.PUBLIC_DEVICE_ADDRESS), own_address_type=hci.OwnAddressType.RANDOM, timeout=100)
        self.client = self.connection.gatt_client

    def began(self, connection):
        """Follows a link from its first event on: it may end before `do_connect` goes on."""
        self.connection = connection
        connection.on("disconnection", self.reasons.append)
        connection.on(connection.EVENT_SECURITY_REQUEST, lambda wanted: self.requests.append(int(wanted)))

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

    async def do_filled(self):
        """Waits, while it takes no packets, until those that wait fill the buffers of one sender: all earlier ones have come."""
        while len(self.controller.held) < self.controller.total_num_le_acl_data_packets:
            await asyncio.sleep(0.02)

    async def do_hear(self, peer=None, containing=""):
        """Scans, without requests, until there is an advertisement of this address, or with these bytes; what was received."""
        found = asyncio.get_running_loop().create_future()

        def heard(one):
            is_it = peer in (None, one.address.to_string(False)) and bytes.fromhex(containing) in one.data_bytes
            if is_it and not found.done():
                found.set_result(one)

        self.device.on("advertisement", heard)
        try:
            await self.device.start_scanning(active=False)
            one = await found
            return {"data": one.data_bytes.hex(), "connectable": bool(one.is_connectable), "scannable": bool(one.is_scannable)}
        finally:
            self.device.remove_listener("advertisement", heard)
            await self.device.stop_scanning()

    # Security

    async def do_manner(self, **more):
        """How it pairs from now on: what is not named is as in the beginning."""
        self.manner = MANNER | more

    async def do_rotate(self):
        """Uses another resolvable private address."""
        await self.use(hci.Address.generate_private_address(self.device.irk))

    async def do_settle(self):
        """Uses its static address again."""
        await self.use(hci.Address(self.address))

    async def use(self, address):
        await self.device.send_sync_command(hci.HCI_LE_Set_Random_Address_Command(random_address=address))
        self.device.random_address = address

    async def do_pair(self):
        """Pairs; what the user has compared, and whether the key is authenticated."""
        self.compared = None
        await self.connection.pair()
        return {"compared": self.compared, "authenticated": bool(self.connection.authenticated)}

    async def do_sign(self, uuid, value, counter, damage=0):
        """Writes with a signature, whose bits `damage` changes.

        Spec: Core Vol 3 Part H, 2.4.5, Signing algorithm; the function has the most significant byte first.
        """
        packet = struct.pack("<BH", att.Opcode.ATT_SIGNED_WRITE_COMMAND, characteristic(self.client, uuid).handle)
        packet += bytes.fromhex(value) + struct.pack("<I", counter)
        code = bytearray(crypto.aes_cmac(packet[::-1], SIGNATURE_KEY[::-1])[:8][::-1])
        code[0] ^= damage
        self.connection.send_l2cap_pdu(ATT, packet + code)

    async def do_type(self, passkey):
        self.typed.put_nowait(passkey)

    async def do_encrypt(self):
        """Encrypts the link with the key of the bond."""
        await self.connection.encrypt()

    async def do_unbond(self):
        await self.device.keystore.delete_all()

    async def do_requested(self, count):
        """Waits for so many Security Requests; what each demands."""
        while len(self.requests) < count:
            await asyncio.sleep(0.02)
        return self.requests

    async def do_unasked(self, count):
        """Waits for so many notifications and indications on this link, also of what it has not subscribed to there."""
        while len(self.unasked) < count:
            await asyncio.sleep(0.02)
        return self.unasked

    # As a client

    async def do_handle(self, uuid):
        return characteristic(self.client, uuid).handle

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

    async def do_echo(self, psm, value):
        """Opens a channel, sends a value on it, closes it once as many bytes have come back, and returns these."""
        channel = await self.connection.create_l2cap_channel(LeCreditBasedChannelSpec(psm=psm))
        received = bytearray()
        channel.sink = received.extend
        channel.write(bytes.fromhex(value))
        while len(received) < len(value) // 2:
            await asyncio.sleep(0.02)
        await channel.disconnect()
        return received.hex()

    async def do_forget(self):
        self.values = []

    async def do_summary(self):
        return self.summary()

    def summary(self):
        numbers = [struct.unpack_from("<I", value)[0] for value in self.values]
        wrong = [[at, one, other] for at, (one, other) in enumerate(zip(numbers, numbers[1:])) if other <= one]
        return {"count": len(numbers), "distinct": len(set(numbers)), "last": numbers[-1] if numbers else None, "disorder": wrong[:3]}

    # Channels beside the attributes

    async def do_open(self, psm, mtu, mps, credits):
        """Opens a channel; the longest packet that the other side takes, and the number of the channel."""
        channel = await self.connection.create_l2cap_channel(LeCreditBasedChannelSpec(psm, mtu, mps, credits))
        received = []
        channel.sink = lambda packet: received.append(bytes(packet))
        self.channels.append((channel, received))
        return {"mtu": channel.peer_mtu, "channel": len(self.channels) - 1}

    async def do_transmit(self, value, channel=0, mtu=None):
        """Sends bytes, in packets as long as the other side takes, or as this MTU, and does not wait for credits."""
        sender, _ = self.channels[channel]
        if mtu is not None:
            sender.peer_mtu = mtu
        sender.write(bytes.fromhex(value))

    async def do_arrived(self, size, channel=0):
        """Waits for so many bytes; what they are, and the lengths of their packets."""
        _, received = self.channels[channel]
        while sum(map(len, received)) < size:
            await asyncio.sleep(0.02)
        packets, received[:] = list(received), []
        return {"value": b"".join(packets).hex(), "lengths": list(map(len, packets))}

    async def do_close(self, channel=0):
        await self.channels[channel][0].disconnect()

    async def do_closed(self, channel=0):
        """Waits until the other side has closed the channel."""
        one, _ = self.channels[channel]
        while one.state != one.State.DISCONNECTED:
            await asyncio.sleep(0.02)

    # As a server

    async def own_value(self, _):
        self.asked += 1
        await self.responding.wait()
        return bytes([self.number]) * OWN_LENGTH

    async def do_ignore(self):
        """Responds to no request for its own value from now on."""
        self.asked = 0
        self.responding.clear()

    async def do_respond(self):
        self.responding.set()

    async def do_asked(self):
        """Waits for a request for its own value."""
        while not self.asked:
            await asyncio.sleep(0.02)

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


# How a caller pairs: the capability as the specification numbers them, here neither input nor output.
MANNER = {"io": 3, "sc": True, "mitm": True, "sign": False}
SIGNATURE_KEY = bytes(range(0x40, 0x50))
OWN_LENGTH = 200  # bytes of a caller's own value
# What a server sends without a request: values, and the confirmation of an indication, which a random packet may be.
UNASKED = {0x1B, 0x1E}
# What has no response: responses, values, and the confirmation.
KNOWN_OTHERS = {int(opcode) for opcode in att.Opcode if int(opcode) & 1} | {0x23, int(att.Opcode.ATT_HANDLE_VALUE_CONFIRMATION)}


async def start(air, controller_class, legacy):
    PEERS.mkdir(parents=True, exist_ok=True)
    return [await Caller(number).begin(air, controller_class, legacy) for number in range(1, COUNT + 1)]

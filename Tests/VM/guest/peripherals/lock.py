"""Peripherals that pair: "Lock", D1:00:00:00:00:06/random, and "Latch", D1:00:00:00:00:07/random, by their identities.

The tests change how they pair, and make them act, by `tell NAME JSON` (radio.py): the fields of `Manner`, and the verbs of
`Lock.obey`. Each keeps a log, a JSON object a line in /run/vm/peers/NAME.log: its links, their encryption, each packet of
the Attribute and the Security Manager Protocol, its channels, what its user saw, and `told` after each line that it was told.
"""

import asyncio
import dataclasses
import json

from bumble import hci, smp
from bumble.att import ATT_PDU
from bumble.core import AdvertisingData
from bumble.gatt import Characteristic, Service
from bumble.l2cap import LeCreditBasedChannelSpec
from bumble.pairing import PairingConfig, PairingDelegate

from common import FLAGS, PEERS, device, vendor

NAMES = {"Lock": ("D1:00:00:00:00:06", bytes(range(16))), "Latch": ("D1:00:00:00:00:07", bytes(range(32, 48)))}
ATT, SECURITY = 4, 6  # channels
ECHO = 0x80  # the PSM of channels that send back what they get
Can, Allow = Characteristic.Properties, Characteristic
Distributed = PairingDelegate.KeyDistribution


@dataclasses.dataclass
class Manner:
    """How a lock pairs. `tell NAME {"reset": true}` makes it as it is here."""

    io: int = 3  # as the specification numbers the capabilities: display, display and yes/no, keyboard, none, keyboard and display
    sc: bool = True
    mitm: bool = True
    bonding: bool = True
    size: int = 16  # of the longest key that it accepts
    identity: bool = True  # whether it distributes its identity
    accept: bool = True
    confirm: bool = True  # what its user says to a number
    passkey: int = 123456  # that it shows
    entered: int | None = None  # that its user enters; else what `type` says
    greeting: int = 0  # notifications that it sends as soon as a link is up
    requests: int = 0  # Security Requests that it sends then
    turns: int = 0  # of its event loop that pass before those
    drop_at: str = ""  # it drops the link in place of the first packet with this name, its own or one that it hears
    oob: bool = False


class User(PairingDelegate):
    """The lock's user."""

    def __init__(self, lock):
        distribution = Distributed.DISTRIBUTE_ENCRYPTION_KEY
        if lock.manner.identity:
            distribution |= Distributed.DISTRIBUTE_IDENTITY_KEY
        super().__init__(
            PairingDelegate.IoCapability(lock.manner.io), local_responder_key_distribution=distribution,
            maximum_encryption_key_size=lock.manner.size)
        self.lock = lock

    async def accept(self):
        return self.lock.manner.accept

    async def compare_numbers(self, number, digits):
        self.lock.note("compared", number=number)
        return self.lock.manner.confirm

    async def get_number(self):
        self.lock.note("asked for a number")
        if self.lock.manner.entered is None:
            return await self.lock.typed.get()
        return self.lock.manner.entered

    async def generate_passkey(self):
        return self.lock.manner.passkey

    async def display_number(self, number, digits):
        self.lock.note("displayed", number=number)


class Session(smp.Session):
    """A session whose key is as long as both sides agreed; Bumble uses all of it."""

    def get_long_term_key(self, rand, ediv):
        key = super().get_long_term_key(rand, ediv)
        size = min(self.maximum_encryption_key_size, self.preq[4])
        return key and key[:size] + bytes(16 - size)


class Lock:
    def __init__(self, name):
        self.name, self.manner, self.typed = name, Manner(), asyncio.Queue()
        self.log = open(PEERS / f"{name}.log", "w", buffering=1)
        self.connection, self.tasks = None, set()
        self.context = smp.OobContext()
        self.beat = Characteristic(vendor(0x34), Can.NOTIFY, Allow.READABLE, b"")
        self.services = [Service(vendor(0x30), [
            Characteristic(vendor(0x31), Can.READ, Allow.READABLE, b"open"),
            Characteristic(vendor(0x32), Can.READ, Allow.READABLE | Allow.READ_REQUIRES_ENCRYPTION, b"encrypted"),
            Characteristic(vendor(0x33), Can.READ, Allow.READABLE | Allow.READ_REQUIRES_AUTHENTICATION, b"authenticated"),
            self.beat])]

    def note(self, event, **more):
        self.log.write(json.dumps({"event": event, **more}) + "\n")

    def start(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # What it says and hears

    async def begin(self, air, controller_class, legacy):
        address, key = NAMES[self.name]
        self.device, self.controller = await device(
            self.name, address, air, controller_class, legacy, self.services, strength=-58)
        self.device.irk = key
        self.device.pairing_config_factory = lambda _: self.configuration()
        self.device.smp_manager.session_proxy = Session
        self.device.on("connection", self.connected)
        host, channels = self.device.host, self.device.l2cap_channel_manager
        send, hear = host.send_l2cap_pdu, channels.on_pdu

        def sent(handle, channel, packet):
            if not self.is_dropped_at(self.carry("sent", channel, packet)):
                send(handle, channel, packet)

        def heard(connection, channel, packet):
            if not self.is_dropped_at(self.carry("heard", channel, packet)):
                hear(connection, channel, packet)

        host.send_l2cap_pdu, channels.on_pdu = sent, heard
        self.device.create_l2cap_server(LeCreditBasedChannelSpec(psm=ECHO), self.opened)
        await self.advertise()
        return self

    def is_dropped_at(self, name):
        """Drops the link if its time has come with a packet of this name."""
        if name is None or name != self.manner.drop_at:
            return False
        self.manner.drop_at = ""
        self.controller.drop_links(8)
        return True

    def carry(self, direction, channel, packet):
        kinds = {ATT: ATT_PDU, SECURITY: smp.SMP_Command}
        if channel not in kinds:
            return None
        name = kinds[channel].from_bytes(packet).name
        self.note(direction, channel=channel, name=name, encrypted=bool(self.connection and self.connection.is_encrypted))
        return name

    def configuration(self):
        oob = PairingConfig.OobConfig(self.context, None, None) if self.manner.oob else None
        return PairingConfig(
            self.manner.sc, self.manner.mitm, self.manner.bonding, User(self), PairingConfig.AddressType.RANDOM, oob)

    async def advertise(self):
        advertised = AdvertisingData([FLAGS, (AdvertisingData.COMPLETE_LOCAL_NAME, self.name.encode())])
        await self.device.start_advertising(
            auto_restart=True, advertising_data=bytes(advertised), advertising_interval_min=60, advertising_interval_max=60)

    # Links

    def connected(self, connection):
        self.connection = connection
        self.note("connected", address=str(self.device.random_address), peer=str(connection.peer_address))
        connection.on("disconnection", self.disconnected)
        connection.on("connection_encryption_change", lambda: self.note("encrypted", on=bool(connection.is_encrypted)))
        connection.on("connection_encryption_failure", lambda error: self.note("not encrypted", error=int(error)))
        connection.on("pairing", self.paired)
        connection.on("pairing_failure", self.failed)
        self.start(self.greet(connection))

    async def greet(self, connection):
        for number in range(self.manner.greeting):
            await self.device.gatt_server.notify_subscriber(connection, self.beat, bytes([number]), force=True)
        for _ in range(self.manner.turns):
            await asyncio.sleep(0)
        self.request(self.manner.requests)

    def request(self, count):
        for _ in range(count):
            if self.connection:
                self.device.request_pairing(self.connection)

    def opened(self, channel):
        self.note("opened", encrypted=bool(self.connection and self.connection.is_encrypted))
        channel.sink = channel.write

    def disconnected(self, reason):
        self.note("disconnected", reason=int(reason))
        self.connection = None

    def paired(self, keys):
        self.note("paired", keys=keys.to_dict())
        # Bumble offers the central's key of a legacy pairing on reconnection, in either role.
        if keys.ltk_central:
            keys.ltk_peripheral = keys.ltk_central

    def failed(self, reason):
        self.note("failed", reason=int(reason))
        # Bumble would use the session of a failed pairing for the next one on this link, which then distributes no keys.
        if self.connection and (session := self.device.smp_manager.sessions.get(self.connection.handle)):
            session.on_disconnection(0)

    # Orders

    async def obey(self, text):
        orders = json.loads(text)
        for name, value in orders.items():
            match name:
                case "reset":
                    self.manner = Manner()
                case "forget":
                    await self.device.keystore.delete_all()
                case "spoil":
                    await self.spoil()
                case "rotate" | "privacy":
                    await self.move(bool(value))
                case "request":
                    self.request(value)
                case "type":
                    self.typed.put_nowait(value)
                case "drop":
                    self.controller.drop_links(value)
                case "share":
                    data = self.context.share()
                    self.note("shared", c=data.c.hex(), r=data.r.hex())
                case _:
                    assert hasattr(self.manner, name), name
                    setattr(self.manner, name, value)
        self.note("told", orders=orders)

    async def spoil(self):
        """Every key is another one from now on."""
        store = self.device.keystore
        for name, keys in await store.get_all():
            for key in (keys.ltk, keys.ltk_central, keys.ltk_peripheral):
                if key:
                    key.value = bytes(byte ^ 0x55 for byte in key.value)
            await store.update(name, keys)

    async def move(self, is_private):
        """Uses a new private address, or its identity again."""
        await self.device.stop_advertising()
        address = hci.Address.generate_private_address(self.device.irk) if is_private else self.device.static_address
        await self.device.send_sync_command(hci.HCI_LE_Set_Random_Address_Command(random_address=address))
        self.device.random_address = address
        await self.advertise()


async def start(air, controller_class, legacy):
    PEERS.mkdir(parents=True, exist_ok=True)
    return [await Lock(name).begin(air, controller_class, legacy) for name in NAMES]

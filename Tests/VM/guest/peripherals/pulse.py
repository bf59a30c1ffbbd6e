"""The main peripheral, "Pulse", D1:00:00:00:00:01/random, -47 dBm: a heart rate belt with a workbench beside it.

The workbench's characteristics each do one thing that a client must get right: long values, echo, a burst of 1,000
notifications, indications that wait for their confirmations, a link that ends in the middle of a request, a request that
never has a response, and every kind of refusal.
"""

import asyncio
import struct

from bumble.att import ATT_Error
from bumble.core import AdvertisingData
from bumble.gatt import Characteristic, CharacteristicValue, Descriptor, Service
from bumble.profiles.device_information_service import DeviceInformationService

from common import FLAGS, device, vendor

ADDRESS = "D1:00:00:00:00:01"
BURST = 1000
INDICATED = [b"one", b"two", b"three"]

Can, Allow = Characteristic.Properties, Characteristic


class Workbench:
    """The values behind the characteristics, and what the client has done to them."""

    def __init__(self):
        self.device = self.controller = None
        self.ledger = bytearray(index & 255 for index in range(512))
        self.plain = b"\0"
        self.commands = []
        self.confirmed = 0
        self.tasks = set()

        def value(read=None, write=None):
            return CharacteristicValue(read=read, write=write)

        both = Allow.READABLE | Allow.WRITEABLE
        self.echo = Characteristic(
            vendor(2), Can.WRITE | Can.WRITE_WITHOUT_RESPONSE | Can.NOTIFY, Allow.WRITEABLE, value(write=self.write_echo))
        self.burst = Characteristic(vendor(5), Can.NOTIFY, Allow.READABLE, b"")
        self.told = Characteristic(vendor(6), Can.INDICATE, Allow.READABLE, b"")
        self.beat = Characteristic(
            "2A37", Can.NOTIFY, Allow.READABLE, b"\0\0", [Descriptor("2901", Allow.READABLE, b"beats per minute")])
        self.level = Characteristic("2A19", Can.READ | Can.NOTIFY, Allow.READABLE, b"\x4d")
        self.burst.on("subscription", self.subscribed_burst)
        self.told.on("subscription", self.subscribed_told)
        self.beat.on("subscription", self.subscribed_beat)
        hidden = Service(vendor(0x20), [Characteristic(vendor(0x21), Can.READ, Allow.READABLE, b"hidden")], primary=False)
        self.services = [
            DeviceInformationService(manufacturer_name="Bumble", model_number="Pulse", serial_number="0001"),
            Service("180D", [
                self.beat,
                Characteristic("2A38", Can.READ, Allow.READABLE, b"\x01"),
                Characteristic("2A39", Can.WRITE, Allow.WRITEABLE, value(write=lambda _, v: None))]),
            Service("180F", [self.level]),
            hidden,
            Service(vendor(0), [
                Characteristic(
                    vendor(1), Can.READ | Can.WRITE, both, value(lambda _: bytes(self.ledger), self.write_ledger),
                    [Descriptor("2901", Allow.READABLE, b"ledger")]),
                self.echo,
                Characteristic(
                    vendor(3), Can.READ | Can.WRITE_WITHOUT_RESPONSE, both,
                    value(lambda _: b"".join(self.commands[-3:]), lambda _, v: self.commands.append(bytes(v)))),
                Characteristic(vendor(4), Can.READ | Can.WRITE, both, value(lambda _: self.plain, self.write_plain)),
                self.burst, self.told,
                Characteristic(vendor(7), Can.READ, Allow.READABLE, value(lambda _: struct.pack("<H", self.confirmed))),
                Characteristic(vendor(8), Can.READ, Allow.READABLE, value(self.read_and_vanish)),
                Characteristic(vendor(9), Can.READ, Allow.READABLE, value(self.read_forever)),
                Characteristic(vendor(10), Can.READ, Allow.READABLE | Allow.READ_REQUIRES_ENCRYPTION, b"locked"),
                Characteristic(vendor(11), Can.READ, Allow.READABLE | Allow.READ_REQUIRES_AUTHENTICATION, b"locked"),
                Characteristic(vendor(12), Can.READ, Allow.READABLE, value(self.refuse)),
            ], included_services=[hidden]),
        ]

    def start(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def write_ledger(self, _, value):
        self.ledger[:] = value

    def write_plain(self, _, value):
        self.plain = bytes(value)

    async def write_echo(self, bearer, value):
        await self.device.notify_subscriber(bearer, self.echo, bytes(value))

    def subscribed_burst(self, bearer, notify, _):
        if notify:
            self.start(self.send_burst(bearer))

    async def send_burst(self, bearer):
        for number in range(BURST):
            await self.device.notify_subscriber(bearer, self.burst, struct.pack("<I", number) + bytes(16))
            if number % 8 == 7:
                await asyncio.sleep(0)

    def subscribed_told(self, bearer, _, indicate):
        if indicate:
            self.confirmed = 0
            self.start(self.send_indications(bearer))

    async def send_indications(self, bearer):
        for value in INDICATED:
            await self.device.indicate_subscriber(bearer, self.told, value)
            self.confirmed += 1

    def subscribed_beat(self, bearer, notify, _):
        if notify:
            self.start(self.send_beats(bearer))

    async def send_beats(self, bearer):
        rate = 72
        while self.device.gatt_server.subscribers.get(bearer, {}).get(self.beat.handle, b"\0")[0] & 1:
            await self.device.notify_subscriber(bearer, self.beat, bytes([6, rate]))
            rate = 72 + (rate - 71) % 8
            await asyncio.sleep(0.1)

    async def read_and_vanish(self, _):
        self.controller.drop_links(8)
        await asyncio.Event().wait()

    async def read_forever(self, _):
        await asyncio.Event().wait()

    def refuse(self, _):
        raise ATT_Error(0x81)


async def start(air, controller_class, legacy):
    bench = Workbench()
    bench.device, bench.controller = await device(
        "Pulse", ADDRESS, air, controller_class, legacy, bench.services, strength=-47)
    advertised = AdvertisingData([
        FLAGS, (AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, bytes.fromhex("0d180f18")),
        (AdvertisingData.COMPLETE_LOCAL_NAME, b"Pulse")])
    response = AdvertisingData([(AdvertisingData.MANUFACTURER_SPECIFIC_DATA, bytes.fromhex("ffff0102"))])
    await bench.device.start_advertising(
        auto_restart=True, advertising_data=bytes(advertised), scan_response_data=bytes(response),
        advertising_interval_min=60, advertising_interval_max=60)
    return bench

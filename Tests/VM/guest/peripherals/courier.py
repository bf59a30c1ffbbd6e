"""A peripheral with credit-based channels: "Courier", D1:00:00:00:00:04/random.

Its PSMs are those of an echo, a source of numbered packets, a peer that closes its channel after a packet, one that is sparing
with credits, one that never responds, and one that refuses all channels for lack of security. Three characteristics say how far
source and miser are, and have the miser be generous.
"""

import asyncio
import struct

from bumble.core import AdvertisingData
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.l2cap import L2CAP_LE_Credit_Based_Connection_Response, L2CAP_LE_Flow_Control_Credit, LeCreditBasedChannelSpec

from common import FLAGS, device, vendor

ADDRESS = "D1:00:00:00:00:04"
ECHO, SOURCE, CLOSING, MISER, SILENT, LOCKED = 0x80, 0x81, 0x82, 0x83, 0x84, 0x86
PACKETS = 800
Can, Allow = Characteristic.Properties, Characteristic


class Courier:
    def __init__(self):
        self.device = self.controller = self.hoard = None
        self.sent = self.received = self.disorder = 0
        self.tasks = set()

        def value(read=None, write=None):
            return CharacteristicValue(read=read, write=write)

        self.service = Service(vendor(0x30), [
            Characteristic(vendor(0x31), Can.READ, Allow.READABLE, value(lambda _: struct.pack("<I", self.sent))),
            Characteristic(
                vendor(0x32), Can.READ | Can.WRITE, Allow.READABLE | Allow.WRITEABLE,
                value(lambda _: struct.pack("<II", self.received, self.disorder), lambda _, v: self.be_generous())),
            Characteristic(vendor(0x33), Can.READ, Allow.READABLE, value(self.vanish)),
        ])

    def start(self, work):
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def serve(self):
        def server(psm, handler, credits, mtu=2048):
            self.device.create_l2cap_server(
                LeCreditBasedChannelSpec(psm=psm, mtu=mtu, mps=247, max_credits=credits), handler)

        server(ECHO, self.echo, 16)
        server(SOURCE, lambda channel: self.start(self.pour(channel)), 16)
        server(CLOSING, self.send_and_close, 16)
        server(MISER, self.hold_credits, 4, mtu=100)
        manager = self.device.l2cap_channel_manager
        respond = manager.on_l2cap_le_credit_based_connection_request

        def requested(connection, cid, request):
            if request.le_psm == LOCKED:
                results = L2CAP_LE_Credit_Based_Connection_Response.Result
                manager.send_control_frame(connection, cid, L2CAP_LE_Credit_Based_Connection_Response(
                    identifier=request.identifier, destination_cid=0, mtu=0, mps=0, initial_credits=0,
                    result=results.CONNECTION_REFUSED_INSUFFICIENT_AUTHENTICATION))
            elif request.le_psm != SILENT:
                respond(connection, cid, request)

        manager.on_l2cap_le_credit_based_connection_request = requested

    def echo(self, channel):
        waiting = asyncio.Queue()
        channel.sink = waiting.put_nowait

        async def work():
            while True:
                # Bumble joins what waits for credits into one packet, so one at a time.
                channel.write(await waiting.get())
                await channel.drain()

        self.start(work())

    async def pour(self, channel):
        self.sent = 0
        channel.sink = lambda _: None
        for number in range(PACKETS):
            channel.write(struct.pack("<I", number) + bytes(96))
            await channel.drain()
            self.sent = number + 1
            if number % 8 == 7:
                await asyncio.sleep(0)

    def send_and_close(self, channel):
        async def work():
            for word in (b"so", b"long", b"then"):
                channel.write(word)
                await channel.drain()
            await channel.disconnect()

        channel.sink = lambda _: self.start(work())

    def hold_credits(self, channel):
        self.received = self.disorder = 0
        self.hoard = channel
        # Below this number Bumble would grant new ones.
        channel.peer_credits_threshold = -1
        channel.sink = self.take

    def take(self, packet):
        self.disorder += struct.unpack_from("<I", packet)[0] != self.received
        self.received += 1

    def be_generous(self):
        channel = self.hoard
        channel.peer_credits_threshold = channel.peer_max_credits // 2
        if channel.peer_credits == 0:
            # One packet's worth opens the way; from then on Bumble counts.
            channel.peer_credits = 1
            channel.send_control_frame(L2CAP_LE_Flow_Control_Credit(
                identifier=channel.manager.next_identifier(channel.connection), cid=channel.source_cid, credits=1))

    async def vanish(self, _):
        self.controller.drop_links(8)
        await asyncio.Event().wait()


async def start(air, controller_class, legacy):
    courier = Courier()
    courier.device, courier.controller = await device(
        "Courier", ADDRESS, air, controller_class, legacy, [courier.service], strength=-52)
    courier.serve()
    advertised = AdvertisingData([FLAGS, (AdvertisingData.COMPLETE_LOCAL_NAME, b"Courier")])
    await courier.device.start_advertising(
        auto_restart=True, advertising_data=bytes(advertised), advertising_interval_min=60, advertising_interval_max=60)
    return courier

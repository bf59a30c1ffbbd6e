"""A heart rate belt that keeps a log: "Belt", D1:00:00:00:00:05/random, -55 dBm, with the heart rate service of Bumble's profiles.

Its beats per minute are a count that goes up by one with each beat that it sends, over all links: a beat that is lost or comes
twice shows. The log, a JSON object a line in /run/vm/peers/Belt.log, has each link, request and beat in their order.

From `tell Belt rest` to `tell Belt beat` (radio.py) it sends nothing; the log has both.
"""

import asyncio
import json

from bumble.core import AdvertisingData
from bumble.profiles.heart_rate_service import HeartRateService

from common import FLAGS, PEERS, device, uuid

ADDRESS = "D1:00:00:00:00:05"
FIRST_BEAT = 60
PAUSE = 0.1  # seconds from beat to beat


class Belt:
    name = "Belt"

    def __init__(self):
        self.count = FIRST_BEAT
        self.is_resting = False
        self.tasks = set()
        self.log = open(PEERS / "Belt.log", "w", buffering=1)
        self.service = HeartRateService(
            lambda _: HeartRateService.HeartRateMeasurement(self.count), HeartRateService.BodySensorLocation.CHEST,
            lambda _: None)
        self.beat = self.service.heart_rate_measurement_characteristic
        self.beat.on("subscription", self.subscribed)

    def note(self, event, **more):
        self.log.write(json.dumps({"event": event, **more}) + "\n")

    async def obey(self, text):
        match text:
            case "rest":
                self.is_resting = True
            case "beat":
                self.is_resting = False
            case _:
                raise ValueError(f"{self.name}: no such command: {text}")
        self.note(f"told to {text}")

    def watch(self, made):
        """Notes what comes, and hands it on to Bumble's server as it is."""
        self.device, server = made, made.gatt_server
        respond = server.on_gatt_pdu

        def listen(bearer, pdu):
            kind = getattr(pdu, "attribute_type", None)
            self.note(
                "request", name=pdu.name, handle=getattr(pdu, "attribute_handle", None), type=kind and uuid(kind))
            respond(bearer, pdu)

        server.on_gatt_pdu = listen
        made.on("connection", self.connected)

    def connected(self, connection):
        self.note("connected")
        connection.on("disconnection", lambda reason: self.note("disconnected", reason=int(reason)))

    def subscribed(self, bearer, notify, _):
        self.note("subscribed" if notify else "unsubscribed")
        if notify:
            task = asyncio.ensure_future(self.send_beats(bearer))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def send_beats(self, bearer):
        server = self.device.gatt_server
        while server.subscribers.get(bearer, {}).get(self.beat.handle, b"\0")[0] & 1:
            if not self.is_resting:
                self.note("beat", number=self.count)
                measurement = HeartRateService.HeartRateMeasurement(self.count, True)
                self.count += 1
                await self.device.notify_subscriber(bearer, self.beat, measurement)
            await asyncio.sleep(PAUSE)


async def start(air, controller_class, legacy):
    PEERS.mkdir(parents=True, exist_ok=True)
    belt = Belt()
    made, _ = await device(belt.name, ADDRESS, air, controller_class, legacy, [belt.service], strength=-55)
    belt.watch(made)
    advertised = AdvertisingData([
        FLAGS, (AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, bytes.fromhex("0d18")),
        (AdvertisingData.COMPLETE_LOCAL_NAME, b"Belt")])
    await made.start_advertising(
        auto_restart=True, advertising_data=bytes(advertised), advertising_interval_min=60, advertising_interval_max=60)
    return [belt]

"""A second, plain peripheral with a public address: "Second", 00:1A:7D:5E:C0:02/public, -71 dBm, a battery that drains."""

import asyncio

from bumble import hci
from bumble.core import AdvertisingData
from bumble.gatt import Characteristic, Service

from common import FLAGS, device

ADDRESS = "00:1A:7D:5E:C0:02/public"


async def start(air, controller_class, legacy):
    properties = Characteristic.Properties.READ | Characteristic.Properties.NOTIFY
    level = Characteristic("2A19", properties, Characteristic.READABLE, b"\x64")
    made, _ = await device("Second", ADDRESS, air, controller_class, legacy, [Service("180F", [level])], strength=-71)

    async def drain():
        charge = 100
        while True:
            await asyncio.sleep(0.1)
            charge = charge - 1 if charge > 1 else 100
            await made.notify_subscribers(level, bytes([charge]))

    advertised = AdvertisingData([
        FLAGS, (AdvertisingData.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, bytes.fromhex("0f18")),
        (AdvertisingData.COMPLETE_LOCAL_NAME, b"Second")])
    await made.start_advertising(
        auto_restart=True, own_address_type=hci.OwnAddressType.PUBLIC, advertising_data=bytes(advertised),
        advertising_interval_min=60, advertising_interval_max=60)
    return made, asyncio.ensure_future(drain())

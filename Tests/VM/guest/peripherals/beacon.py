"""A beacon that notes when it is heard: "Beacon", D1:00:00:00:00:06/random, -55 dBm, off until it is switched on.

Each advertisement that goes out while somebody scans leaves a line in /run/vm/peers/Beacon.times: nanoseconds of the guest's
monotonic clock.
"""

import time

from bumble.core import AdvertisingData

from common import FLAGS, PEERS, device

ADDRESS = "D1:00:00:00:00:06"


async def start(air, controller_class, legacy):
    PEERS.mkdir(parents=True, exist_ok=True)
    log = open(PEERS / "Beacon.times", "w", buffering=1)

    class NotingController(controller_class):
        def send_advertising_pdu(self, packet):
            if not self.is_off and any(controller.le_scan_enable for controller in air.controllers):
                log.write(f"{time.monotonic_ns()}\n")
            super().send_advertising_pdu(packet)

    made, controller = await device("Beacon", ADDRESS, air, NotingController, legacy, strength=-55)
    controller.is_off = True
    advertised = AdvertisingData([FLAGS, (AdvertisingData.COMPLETE_LOCAL_NAME, b"Beacon")])
    await made.start_advertising(
        auto_restart=True, advertising_data=bytes(advertised), advertising_interval_min=60, advertising_interval_max=60)
    return made

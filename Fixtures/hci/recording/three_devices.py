"""Three devices for the recording, each with a controller of its own on the simulated radio.

  Virtual HRM   C3:5A:19:0B:7E:21, static    Heart Rate and Battery, connectable, name and power in the advertisement
  Kitchen       00:AA:02:00:00:0B, public    Environmental Sensing as service data, scannable, name in the scan response
  (no name)     5B:10:44:9D:2E:F6, private   an iBeacon, neither connectable nor scannable
"""
import asyncio
import struct

from bumble import core, hci
from bumble.device import AdvertisingType, Device, DeviceConfiguration
from bumble.gatt import Characteristic, CharacteristicValue, Descriptor, Service
from bumble.host import Host
from bumble.profiles.battery_service import BatteryService
from bumble.profiles.device_information_service import DeviceInformationService
from bumble.transport.common import AsyncPipeSink

AD = core.AdvertisingData
P = Characteristic.Properties
STRENGTH = {}


def distance(controller):
    """Gives every advertiser its own signal strength, a little unsteady."""
    plain = controller.report

    def report(self, pdu, address):
        base = STRENGTH.get(str(address)[:17], -70)
        self.wobble = (getattr(self, 'wobble', 0) + 3) % 5
        self.rssi = base + self.wobble - 2
        plain(self, pdu, address)

    controller.report = report


async def device(link, controller, name, public, address, own, strength):
    STRENGTH[public if own == hci.OwnAddressType.PUBLIC else address] = strength
    made = controller(name, link=link, public_address=public)
    host = Host(made, AsyncPipeSink(made))
    random = '' if own == hci.OwnAddressType.PUBLIC else address
    config = DeviceConfiguration(name=name, address=hci.Address(random or 'C0:00:00:00:00:01'), eatt_enabled=False)
    return Device(config=config, host=host)


async def peripheral(link, controller):
    distance(controller)
    random, public = hci.OwnAddressType.RANDOM, hci.OwnAddressType.PUBLIC
    belt = await device(link, controller, 'Virtual HRM', '00:AA:02:00:00:0A', 'C3:5A:19:0B:7E:21', random, -48)
    heart = Characteristic('2A37', P.NOTIFY, Characteristic.READABLE, b'\0\0')
    belt.add_services([
        DeviceInformationService('BareBLE', 'HRM-1', firmware_revision='1.0'),
        BatteryService(lambda c: 87),
        Service('180D', [
            heart,
            Characteristic('2A38', P.READ, Characteristic.READABLE, b'\x01'),
            Characteristic('2A39', P.WRITE, Characteristic.WRITEABLE, CharacteristicValue(write=lambda c, v: None)),
        ]),
        Service('A1B20001-0000-1000-8000-00805F9B0000', [
            Characteristic('A1B20002-0000-1000-8000-00805F9B0000', P.READ, Characteristic.READABLE,
                           bytes(range(64)), [Descriptor('2901', Descriptor.READABLE, b'Training log')]),
            Characteristic('A1B20003-0000-1000-8000-00805F9B0000', P.READ,
                           Characteristic.READABLE | Characteristic.READ_REQUIRES_ENCRYPTION, b'owner'),
        ]),
    ])
    await belt.power_on()
    await belt.start_advertising(
        auto_restart=True, own_address_type=random, advertising_interval_min=200, advertising_interval_max=200,
        advertising_data=bytes(AD([(AD.FLAGS, b'\x06'), (AD.COMPLETE_LOCAL_NAME, b'Virtual HRM'),
                                   (AD.COMPLETE_LIST_OF_16_BIT_SERVICE_CLASS_UUIDS, struct.pack('<HH', 0x180D, 0x180F)),
                                   (AD.TX_POWER_LEVEL, b'\x04')])),
        scan_response_data=bytes(AD([(AD.APPEARANCE, struct.pack('<H', 0x0341))])))

    kitchen = await device(link, controller, 'Kitchen', '00:AA:02:00:00:0B', '', public, -63)
    await kitchen.power_on()
    await kitchen.start_advertising(
        advertising_type=AdvertisingType.UNDIRECTED_SCANNABLE, own_address_type=public,
        advertising_interval_min=300, advertising_interval_max=300,
        advertising_data=bytes(AD([(AD.FLAGS, b'\x06'), (AD.SERVICE_DATA_16_BIT_UUID, struct.pack('<HhB', 0x181A, 2140, 47))])),
        scan_response_data=bytes(AD([(AD.COMPLETE_LOCAL_NAME, b'Kitchen')])))

    beacon = await device(link, controller, 'beacon', '00:AA:02:00:00:0C', '5B:10:44:9D:2E:F6', random, -81)
    await beacon.power_on()
    identity = bytes.fromhex('0215' + 'b9407f30f5f8466eaff925556b57fe6d' + '00010002' + 'c5')
    await beacon.start_advertising(
        advertising_type=AdvertisingType.UNDIRECTED, own_address_type=random,
        advertising_interval_min=400, advertising_interval_max=400,
        advertising_data=bytes(AD([(AD.FLAGS, b'\x1a'),
                                   (AD.MANUFACTURER_SPECIFIC_DATA, struct.pack('<H', 0x004C) + identity)])))

    async def beat():
        turn = 0
        while True:
            await asyncio.sleep(0.3)
            turn += 1
            await belt.notify_subscribers(heart, bytes([0x16, 70 + turn % 5]) + struct.pack('<H', 850 + turn % 7))

    return belt, kitchen, beacon, asyncio.ensure_future(beat())

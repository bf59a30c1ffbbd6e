"""An extended advertiser that nobody can connect to: "Lighthouse", D1:00:00:00:00:03/random, -60 dBm.

Its 460 bytes of data reach the host in three reports: a name, manufacturer data of 0xFFFF and service data of 180F, both
filled with a count from 0 to 219.
"""

from bumble import hci
from bumble.core import AdvertisingData
from bumble.device import AdvertisingEventProperties, AdvertisingParameters

from common import device

ADDRESS = "D1:00:00:00:00:03"
FILLING = bytes(index & 255 for index in range(220))


async def start(air, controller_class, legacy):
    if legacy:
        return None
    made, controller = await device("Lighthouse", ADDRESS, air, controller_class, legacy, strength=-60)
    data = AdvertisingData([
        (AdvertisingData.COMPLETE_LOCAL_NAME, b"Lighthouse"),
        (AdvertisingData.MANUFACTURER_SPECIFIC_DATA, b"\xff\xff" + FILLING),
        (AdvertisingData.SERVICE_DATA_16_BIT_UUID, b"\x0f\x18" + FILLING)])
    advertising = await made.create_advertising_set(
        advertising_parameters=AdvertisingParameters(
            advertising_event_properties=AdvertisingEventProperties(is_connectable=False),
            primary_advertising_interval_min=60, primary_advertising_interval_max=60,
            own_address_type=hci.OwnAddressType.RANDOM, advertising_sid=5),
        random_address=hci.Address(ADDRESS))
    # Bumble's host hands over at most 251 bytes, so the data goes into the controller directly.
    controller.advertising_sets[advertising.advertising_handle].data = bytearray(bytes(data))
    return made

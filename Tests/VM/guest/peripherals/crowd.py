"""Ten heart rate belts that nobody wears: "Crowd 0", D1:00:00:00:02:00/random, to "Crowd 9".

They send nothing, and are off at first.
"""

from bumble.core import AdvertisingData
from bumble.profiles.heart_rate_service import HeartRateService

from common import FLAGS, device

COUNT = 10


async def start(air, controller_class, legacy):
    crowd = []
    for number in range(COUNT):
        service = HeartRateService(lambda _: HeartRateService.HeartRateMeasurement(60))
        made, controller = await device(
            f"Crowd {number}", f"D1:00:00:00:02:{number:02X}", air, controller_class, legacy, [service])
        controller.is_off = True
        await made.start_advertising(
            auto_restart=True, advertising_data=bytes(AdvertisingData([FLAGS])), advertising_interval_min=300,
            advertising_interval_max=300)
        crowd.append(made)
    return crowd

"""What the Bumble peripherals share: a device on the air, and a file that says what its GATT server really holds."""

import json
from pathlib import Path

from bumble import hci
from bumble.core import AdvertisingData
from bumble.device import Device, DeviceConfiguration
from bumble.host import Host
from bumble.transport.common import AsyncPipeSink

PEERS = Path("/run/vm/peers")
FLAGS = (AdvertisingData.FLAGS, b"\x06")
vendor = "b1e5{:04x}-7d1c-4f0a-9c3e-2a5b6c7d8e9f".format


async def device(name, address, air, controller_class, legacy, services=(), strength=-50):
    """A powered Bumble device with these services; `address` is random static, or public when it ends in /public."""
    bare, _, kind = address.partition("/")
    public = bare if kind == "public" else "00:1A:7D:FF:FF:FF"
    controller = controller_class(name, link=air, public_address=public, legacy=legacy)
    controller.strength = strength
    configuration = DeviceConfiguration(name=name, address=hci.Address(bare), eatt_enabled=False)
    made = Device(config=configuration, host=Host(controller, AsyncPipeSink(controller)))
    made.add_services(list(services))
    await made.power_on()
    write_tree(name, made.gatt_server)
    return made, controller


def uuid(value):
    """The shortest standard spelling: four digits, or 36 characters."""
    text = str(value.to_hex_str("-")).lower()
    return text[4:8] if len(text) == 36 and text.startswith("0000") and text.endswith("-0000-1000-8000-00805f9b34fb") else text


def write_tree(name, server):
    """Writes the attribute table of Bumble's server; the tests compare what they discover with it."""
    rows = []
    for attribute in server.attributes:
        row = {"handle": attribute.handle, "type": uuid(attribute.type), "end": attribute.end_group_handle}
        if hasattr(attribute, "uuid"):
            row["uuid"] = uuid(attribute.uuid)
        if hasattr(attribute, "properties"):
            row["properties"] = int(attribute.properties)
        if hasattr(attribute, "service"):
            row["included"] = uuid(attribute.service.uuid)
        rows.append(row)
    PEERS.mkdir(parents=True, exist_ok=True)
    (PEERS / f"{name}.json").write_text(json.dumps(rows))

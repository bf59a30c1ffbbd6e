"""What Bumble's GATT client finds at a server, on any bearer: on the air (peripherals/caller.py) or on a Unix socket
(socket_client.py).
"""

from bumble import att
from bumble.core import UUID


def spelled(uuid):
    """The shortest standard spelling: four digits, or 36 characters."""
    text = str(uuid.to_hex_str("-")).lower()
    return text[4:8] if text.startswith("0000") and text.endswith("-0000-1000-8000-00805f9b34fb") else text


async def refused(work):
    """The value that is read, in hexadecimal, or the code of the server's error."""
    try:
        return (await work).hex()
    except att.ATT_Error as error:
        return int(error.error_code)


async def explored(client):
    """Everything that the server has, with its values, in the order of the handles."""
    found = []
    for service in await client.discover_services():
        rows = []
        for one in await service.discover_characteristics():
            descriptors = [
                {"handle": each.handle, "uuid": spelled(each.type), "value": await refused(client.read_value(each))}
                for each in await one.discover_descriptors()]
            value = await refused(client.read_value(one)) if one.properties & one.properties.READ else None
            rows.append({
                "handle": one.handle, "uuid": spelled(one.uuid), "properties": int(one.properties), "value": value,
                "descriptors": descriptors})
        found.append({
            "handle": service.handle, "end": service.end_group_handle, "uuid": spelled(service.uuid), "characteristics": rows})
    return found


def characteristic(client, uuid):
    """The first characteristic of this type among those that were discovered."""
    return next(each for service in client.services for each in service.characteristics if each.uuid == UUID(uuid))

"""The air between virtual controllers: the data that each sends in an advertising event, and the receivers."""

import asyncio
import dataclasses

from bumble import hci, ll
from bumble.link import LocalLink


@dataclasses.dataclass
class Advertisement:
    """The data that one advertiser sends in one advertising event."""

    address: hci.Address
    legacy: bool
    connectable: bool
    scannable: bool
    data: bytes
    response: bytes
    sid: int
    strength: int
    tx_power: int = 127


class Air(LocalLink):
    """Carries advertisements and data between controllers."""

    def send_advertising_pdu(self, sender, pdu):
        if sender.is_off:
            return None
        if isinstance(pdu, ll.ConnectInd):
            return super().send_advertising_pdu(sender, pdu)
        if advertisement := self.describe(sender, pdu):
            for controller in self.controllers - {sender}:
                asyncio.get_running_loop().call_soon(controller.hear, advertisement)

    @staticmethod
    def describe(sender, pdu):
        if isinstance(pdu, ll.AdvInd):
            advertiser = sender.le_legacy_advertiser
            return Advertisement(
                pdu.advertiser_address, True, advertiser.is_connectable, advertiser.is_scannable, bytes(pdu.data),
                bytes(advertiser.scan_response_data), 255, sender.strength)
        for advertiser in sender.advertising_sets.values():
            parameters = advertiser.parameters
            if parameters and advertiser.enabled and parameters.advertising_sid == pdu.sid:
                kind = int(parameters.advertising_event_properties)
                legacy = bool(kind & 1 << 4)
                return Advertisement(
                    pdu.advertiser_address, legacy, bool(kind & 1), bool(kind & 2), bytes(pdu.data),
                    bytes(advertiser.scan_response_data), 255 if legacy else pdu.sid, sender.strength,
                    0 if kind & 1 << 6 else 127)
        return None

    def is_connectable(self, address):
        return any(
            (c.le_legacy_advertiser.enabled and c.le_legacy_advertiser.address == address)
            or any(s.enabled and s.address == address for s in c.advertising_sets.values())
            for c in self.controllers if not c.is_off)

    def send_acl_data(self, sender, destination, transport, data):
        connection = sender.le_connections.get(destination)
        receiver = self.find_le_controller(destination)
        if connection and receiver:
            asyncio.get_running_loop().call_soon(receiver.on_link_acl_data, connection.self_address, transport, data)

"""Bumble's virtual controllers, completed.

Bumble's Controller lacks much of what a host can observe of scanning and link control; `VirtualController` adds it as
Core Vol 4 Part E and Vol 6 Part B describe it: report types, scan responses, advertising that is not connectable,
duplicate filter, accept list, fragments, cancelled connects, events with resolved addresses, reports that the host has
masked, and a response to every command.
"""

import asyncio

from bumble import hci, ll
from bumble.controller import Controller, LegacyAdvertiser

Status, Type = hci.HCI_ErrorCode, hci.HCI_LE_Set_Advertising_Parameters_Command.AdvertisingType
NOBODY = hci.Address("00:00:00:00:00:00")
ENHANCED_COMPLETE = 1 << 9  # bits of the LE event mask
LEGACY_REPORT = 1 << 1
EXTENDED_REPORT = 1 << 12
REPORT_LIMIT = 229  # advertising data in one extended report
EXTENDED_COMMANDS = {
    hci.HCI_LE_SET_EXTENDED_SCAN_PARAMETERS_COMMAND, hci.HCI_LE_SET_EXTENDED_SCAN_ENABLE_COMMAND,
    hci.HCI_LE_EXTENDED_CREATE_CONNECTION_COMMAND, hci.HCI_LE_SET_EXTENDED_ADVERTISING_PARAMETERS_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_DATA_COMMAND, hci.HCI_LE_SET_EXTENDED_SCAN_RESPONSE_DATA_COMMAND,
    hci.HCI_LE_SET_EXTENDED_ADVERTISING_ENABLE_COMMAND, hci.HCI_LE_SET_ADVERTISING_SET_RANDOM_ADDRESS_COMMAND,
    hci.HCI_LE_REMOVE_ADVERTISING_SET_COMMAND, hci.HCI_LE_CLEAR_ADVERTISING_SETS_COMMAND,
    hci.HCI_LE_READ_MAXIMUM_ADVERTISING_DATA_LENGTH_COMMAND,
    hci.HCI_LE_READ_NUMBER_OF_SUPPORTED_ADVERTISING_SETS_COMMAND,
}


def result(code):
    return hci.HCI_StatusReturnParameters(code)


class Advertiser(LegacyAdvertiser):
    """Sends undirected advertising of every type; Bumble's sends only what is connectable."""

    @property
    def is_connectable(self):
        return self.advertising_type == Type.ADV_IND

    @property
    def is_scannable(self):
        return self.advertising_type in (Type.ADV_IND, Type.ADV_SCAN_IND)

    def send_advertising_data(self):
        if self.enabled and self.advertising_type in (Type.ADV_IND, Type.ADV_SCAN_IND, Type.ADV_NONCONN_IND):
            self.controller.send_advertising_pdu(ll.AdvInd(advertiser_address=self.address, data=self.advertising_data))


class VirtualController(Controller):
    le_acl_data_packet_length = 251
    strength = -50  # dBm at which all others receive this one
    is_off = False
    is_extended_scan = False  # by the command that has switched it on
    advertisements_begun = 0  # how often the host has switched sets on

    def __init__(self, *arguments, legacy=False, **more):
        self.accept_list, self.reported, self.deaf, self.hears_after_reset = set(), set(), False, False
        # The packets that others have sent to this controller while it takes none, each with its sender; or None.
        self.held = None
        # Address resolution in the controller is not simulated, so it must not be reported as supported.
        self.le_features &= ~hci.LeFeatureMask.LL_PRIVACY
        if legacy:
            self.le_features &= ~(
                hci.LeFeatureMask.LE_EXTENDED_ADVERTISING | hci.LeFeatureMask.LE_PERIODIC_ADVERTISING
                | hci.LeFeatureMask.LE_2M_PHY | hci.LeFeatureMask.LE_CODED_PHY
                | hci.LeFeatureMask.EXTENDED_SCANNER_FILTER_POLICIES)
        else:
            self.supported_commands = self.supported_commands | EXTENDED_COMMANDS
        super().__init__(*arguments, **more)
        self.le_legacy_advertiser = Advertiser(self)

    def wants(self, event):
        mask = self.le_event_mask
        return bool((int.from_bytes(mask, "little") if isinstance(mask, (bytes, bytearray)) else int(mask)) & event)

    def later(self, packet):
        asyncio.get_running_loop().call_soon(self.send_hci_packet, packet)

    def send_hci_packet(self, packet):
        if isinstance(packet, hci.HCI_LE_Connection_Complete_Event) and self.wants(ENHANCED_COMPLETE):
            packet = hci.HCI_LE_Enhanced_Connection_Complete_Event(
                status=packet.status, connection_handle=packet.connection_handle, role=packet.role,
                peer_address_type=packet.peer_address_type, peer_address=packet.peer_address,
                local_resolvable_private_address=NOBODY, peer_resolvable_private_address=NOBODY,
                connection_interval=packet.connection_interval, peripheral_latency=packet.peripheral_latency,
                supervision_timeout=packet.supervision_timeout, central_clock_accuracy=packet.central_clock_accuracy)
        super().send_hci_packet(packet)

    def on_hci_packet(self, packet):
        if isinstance(packet, hci.HCI_Command) and not hasattr(self, f"on_{packet.name.lower()}"):
            unknown = result(Status.UNKNOWN_HCI_COMMAND_ERROR)
            self.send_hci_packet(hci.HCI_Command_Complete_Event(1, packet.op_code, unknown))
        else:
            super().on_hci_packet(packet)

    def on_hci_reset_command(self, command):
        self.le_scan_enable, self.pending_le_connection = False, None
        self.deaf = self.deaf and not self.hears_after_reset
        self.accept_list.clear()
        # The host discards its links without an event; the other ends detect that no packets arrive any more.
        for connection in list(self.le_connections.values()):
            self.drop_far_end(connection, Status.CONNECTION_TIMEOUT_ERROR)
        self.le_connections.clear()
        for advertiser in [self.le_legacy_advertiser, *self.advertising_sets.values()]:
            advertiser.stop()
        self.advertising_sets.clear()
        return super().on_hci_reset_command(command)

    # Scanning

    def on_hci_le_set_extended_scan_parameters_command(self, command):
        if self.le_scan_enable:
            return result(Status.COMMAND_DISALLOWED_ERROR)
        self.le_scan_type = command.scan_types[0]
        return super().on_hci_le_set_extended_scan_parameters_command(command)

    def on_hci_le_set_scan_enable_command(self, command):
        self.reported.clear()
        self.is_extended_scan = False
        return super().on_hci_le_set_scan_enable_command(command)

    def on_hci_le_set_extended_scan_enable_command(self, command):
        self.reported.clear()
        self.is_extended_scan = True
        return super().on_hci_le_set_extended_scan_enable_command(command)

    @staticmethod
    def entry(address_type, address):
        return int(address_type), bytes(address)

    def on_hci_le_clear_filter_accept_list_command(self, command):
        self.accept_list.clear()
        return result(Status.SUCCESS)

    def on_hci_le_add_device_to_filter_accept_list_command(self, command):
        self.accept_list.add(self.entry(command.address_type, command.address))
        return result(Status.SUCCESS)

    def on_hci_le_remove_device_from_filter_accept_list_command(self, command):
        self.accept_list.discard(self.entry(command.address_type, command.address))
        return result(Status.SUCCESS)

    def hear(self, advertisement):
        extended = bool(self.le_features & hci.LeFeatureMask.LE_EXTENDED_ADVERTISING)
        if self.deaf or not (advertisement.legacy or extended):
            return
        address = advertisement.address
        listed = self.entry(address.address_type, address) in self.accept_list
        if self.le_scan_enable and (listed or not self.le_scanning_filter_policy & 1):
            self.report(advertisement, advertisement.data, False)
            if self.le_scan_type == 1 and advertisement.scannable:
                self.report(advertisement, advertisement.response, True)
        wanted = self.pending_le_connection
        if wanted is None or not advertisement.connectable or not self.link.is_connectable(address):
            return
        if listed if wanted.initiator_filter_policy else self.same(wanted, address):
            wanted.peer_address = address
            self.create_le_connection(address)

    @staticmethod
    def same(wanted, address):
        return wanted.peer_address == address and int(wanted.peer_address_type) & 1 == int(address.address_type) & 1

    def report(self, heard, data, is_response):
        key = (bytes(heard.address), heard.sid, is_response, bytes(data))
        if self.filter_duplicates and key in self.reported:
            return
        self.reported.add(key)
        # The host has masked it.
        if not self.wants(EXTENDED_REPORT if self.is_extended_scan else LEGACY_REPORT):
            return
        if not self.is_extended_scan:
            if not heard.legacy:
                return
            kind = 4 if is_response else 0 if heard.connectable else 2 if heard.scannable else 3
            self.send_hci_packet(hci.HCI_LE_Advertising_Report_Event([hci.HCI_LE_Advertising_Report_Event.Report(
                event_type=kind, address_type=heard.address.address_type, address=heard.address, data=data,
                rssi=heard.strength)]))
            return
        kind = heard.connectable | heard.scannable << 1 | is_response << 3 | heard.legacy << 4
        fragments = [data[at:at + REPORT_LIMIT] for at in range(0, len(data), REPORT_LIMIT)] or [b""]
        for number, fragment in enumerate(fragments, 1):
            more_to_come = 1 << 5 if number < len(fragments) else 0
            event = hci.HCI_LE_Extended_Advertising_Report_Event
            self.send_hci_packet(event([event.Report(
                event_type=kind | more_to_come, address_type=heard.address.address_type, address=heard.address,
                primary_phy=1, secondary_phy=0 if heard.legacy else 1, advertising_sid=heard.sid,
                tx_power=heard.tx_power, rssi=heard.strength, periodic_advertising_interval=0,
                direct_address_type=0, direct_address=NOBODY, data=fragment)]))

    # Advertising

    def on_hci_le_set_extended_advertising_enable_command(self, command):
        if command.enable and not set(command.advertising_handles) <= set(self.advertising_sets):
            return result(Status.UNKNOWN_ADVERTISING_IDENTIFIER_ERROR)
        self.advertisements_begun += bool(command.enable)
        return super().on_hci_le_set_extended_advertising_enable_command(command)

    def on_hci_le_remove_advertising_set_command(self, command):
        # One that is on is removed as well: Bumble's host does that while it restarts advertising at the end of a link.
        if command.advertising_handle not in self.advertising_sets:
            return result(Status.UNKNOWN_ADVERTISING_IDENTIFIER_ERROR)
        return super().on_hci_le_remove_advertising_set_command(command)

    def on_hci_le_clear_advertising_sets_command(self, command):
        if any(advertiser.enabled for advertiser in self.advertising_sets.values()):
            return result(Status.COMMAND_DISALLOWED_ERROR)
        return super().on_hci_le_clear_advertising_sets_command(command)

    # Links

    def on_hci_le_create_connection_command(self, command):
        if not self.refuses_second_link(command):
            super().on_hci_le_create_connection_command(command)

    def on_hci_le_extended_create_connection_command(self, command):
        if not self.refuses_second_link(command):
            super().on_hci_le_extended_create_connection_command(command)

    def refuses_second_link(self, command):
        exists = not command.initiator_filter_policy and command.peer_address in self.le_connections
        if exists:
            self._send_hci_command_status(Status.CONNECTION_ALREADY_EXISTS_ERROR, command.op_code)
        return exists

    def on_hci_le_create_connection_cancel_command(self, command):
        if self.pending_le_connection is None:
            return result(Status.COMMAND_DISALLOWED_ERROR)
        self.pending_le_connection = None
        self.later(hci.HCI_LE_Connection_Complete_Event(
            Status.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, 0, 0, 0, NOBODY, 0, 0, 0, 0))
        return result(Status.SUCCESS)

    def on_link_acl_data(self, sender, transport, data):
        connection = self.le_connections.get(sender)
        if connection is None:
            return
        limit = self.le_acl_data_packet_length
        for at in range(0, len(data), limit):
            part = data[at:at + limit]
            boundary = 2 if at == 0 else 1
            self.send_hci_packet(hci.HCI_AclDataPacket(connection.handle, boundary, 0, len(part), part))

    def on_hci_acl_data_packet(self, packet):
        connection = self.find_connection_by_handle(packet.connection_handle)
        receiver = connection and self.link.find_le_controller(connection.peer_address)
        if receiver and receiver.held is not None:
            receiver.held.append((self, packet))
        else:
            super().on_hci_acl_data_packet(packet)

    def hold(self, on):
        """Takes no packets from the air, which then stay in their senders' controllers; or those, and further ones again."""
        waiting, self.held = self.held or [], [] if on else None
        for sender, packet in waiting:
            sender.on_hci_acl_data_packet(packet)

    def link_of(self, command):
        """Responds with Command Status; returns the link that the command names, if it exists."""
        connection = self.find_le_connection_by_handle(command.connection_handle)
        unknown = Status.UNKNOWN_CONNECTION_IDENTIFIER_ERROR
        self._send_hci_command_status(Status.SUCCESS if connection else unknown, command.op_code)
        return connection

    def on_hci_disconnect_command(self, command):
        if connection := self.link_of(command):
            connection.send_ll_control_pdu(ll.TerminateInd(command.reason))
            self.on_le_disconnected(connection, Status.CONNECTION_TERMINATED_BY_LOCAL_HOST_ERROR)

    def on_le_disconnected(self, connection, reason):
        # Both ends may disconnect at the same moment; only the first one counts.
        if self.le_connections.get(connection.peer_address) is connection:
            super().on_le_disconnected(connection, reason)

    def on_hci_read_remote_version_information_command(self, command):
        if self.link_of(command):
            self.later(hci.HCI_Read_Remote_Version_Information_Complete_Event(
                Status.SUCCESS, command.connection_handle, 9, 0xFFFF, 0))

    def on_hci_le_set_phy_command(self, command):
        if self.link_of(command):
            transmit, receive = (2 if int(phys) & 2 else 1 for phys in (command.tx_phys, command.rx_phys))
            self.later(hci.HCI_LE_PHY_Update_Complete_Event(
                Status.SUCCESS, command.connection_handle, transmit, receive))

    def on_hci_le_set_data_length_command(self, command):
        known = self.find_le_connection_by_handle(command.connection_handle)
        if known:
            self.later(hci.HCI_LE_Data_Length_Change_Event(
                command.connection_handle, command.tx_octets, command.tx_time, command.tx_octets, command.tx_time))
        return hci.HCI_StatusAndConnectionHandleReturnParameters(
            Status.SUCCESS if known else Status.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, command.connection_handle)

    def on_hci_read_rssi_command(self, command):
        connection = self.find_le_connection_by_handle(command.handle)
        other = self.link.find_le_controller(connection.peer_address) if connection else None
        return hci.HCI_Read_RSSI_ReturnParameters(
            Status.SUCCESS if connection else Status.UNKNOWN_CONNECTION_IDENTIFIER_ERROR, command.handle,
            other.strength if other else 127)

    def drop_links(self, reason):
        for connection in list(self.le_connections.values()):
            self.drop_far_end(connection, reason)
            self.on_le_disconnected(connection, reason)

    def drop_far_end(self, connection, reason):
        other = self.link.find_le_controller(connection.peer_address)
        far_end = other.le_connections.get(connection.self_address) if other else None
        if far_end:
            other.on_le_disconnected(far_end, reason)

"""Kernel tests with Bumble's peripherals and controllers with extended advertising: the main features and their
ends.
"""

import contextlib
import os
import struct

import bluez
from harness import *

LE_SET_EVENT_MASK = 0x2001


@test
def scan_finds_peers_with_name_services_and_signal():
    of_pulse, of_second = ("localName", "serviceUUIDs", "rssi", "manufacturerData", "flags"), ("localName", "rssi")
    objects = heard_of({PULSE: of_pulse, SECOND: of_second}, "--each", "packet")
    pulse = merged(objects, PULSE, *of_pulse)
    same(pulse["localName"], "Pulse", "name")
    same(sorted(pulse["serviceUUIDs"]), ["180d", "180f"], "services")
    same(pulse["rssi"], -47, "signal of Pulse")
    same(pulse["manufacturerData"], {"ffff": "0102"}, "data of the scan response")
    same(pulse["flags"], 6, "flags")
    second = merged(objects, SECOND, *of_second)
    same((second["localName"], second["rssi"]), ("Second", -71), "the second peer")


@test
def two_programs_advertise_on_one_adapter():
    own = f"{bluez.address(0)}/public"
    first = Program("advertise", "--name", "Alpha", "--adapter", "hci0")
    until(lambda: names_heard(own, 1) == {"Alpha"}, "the first one is not heard")
    second = Program("advertise", "--name", "Beta", "--adapter", "hci0")
    until(lambda: names_heard(own, 1) == {"Alpha", "Beta"}, "both are not heard")
    second.interrupt().must(DONE)
    same(names_heard(own, 2), {"Alpha"}, "names after the second one has ended")
    first.interrupt().must(DONE)


@test
def the_kernel_advertises_until_the_program_ends():
    def is_heard():
        # An advertisement of the kernel that is not connectable has an address of its own.
        outcome = blescan("scan", "--each", "packet", "--for", "1s", "--adapter", "hci1", "--json").must(DONE)
        return any(o.get("localName") == "Gamma" for o in outcome.objects)
    management = Management()
    program = Program("advertise", "--name", "Gamma", "--management", "--adapter", "hci0")
    until(is_heard, "it is not heard")
    change, number = management.instance_changes()[-1]
    same(change, "added", "what has happened")
    management.remove_instance(number)
    until(lambda: ("added", number) in management.instance_changes(), "it is not added again")
    until(is_heard, "it is not heard again")
    program.interrupt().must(DONE)
    management.remove_instance(number, management.INVALID_PARAMETERS)


@test
def scan_joins_extended_advertising_data():
    filling = bytes(range(220)).hex()
    wanted = "localName", "manufacturerData", "serviceData"
    house = merged(heard_of({LIGHTHOUSE: wanted}, "--each", "packet"), LIGHTHOUSE, *wanted)
    same(house["localName"], "Lighthouse", "name")
    same(house["manufacturerData"], {"ffff": filling}, "manufacturer data")
    same(house["serviceData"], {"180f": filling}, "service data")


@test
def scan_ends_after_its_count_and_prints_plain_lines():
    outcome = blescan("scan", "--count", "3", "--each", "packet").must(DONE)
    same(len(outcome.out.splitlines()), 3, "lines")
    assert "\x1b" not in outcome.out, "escape sequences in a pipe"


@test
def explore_shows_the_tree_that_the_peer_has():
    # Some of Pulse's values are traps for readers, so this test only lists them.
    outcome = blescan("explore", PULSE, "--no-read", "--json").must(DONE)
    expected, found = tree("Pulse"), flatten(outcome.objects[-1])
    for row in expected:
        if row["type"] in ("2800", "2801"):
            service = row["uuid"], row["end"], row["type"] == "2800"
            same(found["services"].get(row["handle"]), service, f"service at {row['handle']}")
        elif "properties" in row:
            same(found["characteristics"].get(row["handle"]), row["uuid"], f"characteristic at {row['handle']}")
        elif row["type"] not in ("2802", "2803"):
            same(found["descriptors"].get(row["handle"]), row["type"], f"descriptor at {row['handle']}")
    count = sum(row["type"] in ("2800", "2801") for row in expected)
    same(len(found["services"]), count, "number of services")


def flatten(explored):
    """Returns the services, characteristics (by value handle) and descriptors of `explore --json`, by handle."""
    found = {"services": {}, "characteristics": {}, "descriptors": {}}
    for service in explored["services"]:
        found["services"][service["handle"]] = service["uuid"], service["end"], service["primary"]
        for characteristic in service["characteristics"]:
            found["characteristics"][characteristic["handle"]] = characteristic["uuid"]
            for descriptor in characteristic["descriptors"]:
                found["descriptors"][descriptor["handle"]] = descriptor["uuid"]
    return found


@test
def explore_ends_with_the_number_of_requests():
    outcome = blescan("explore", SECOND).must(DONE)
    assert "requests used" in outcome.out.splitlines()[-1], outcome.tail
    assert "Battery" in outcome.out, outcome.tail


@test
def read_gives_a_value_by_uuid_and_by_handle():
    same(blescan("read", PULSE, "2a19", "--json").must(DONE).values, [b"\x4d"], "battery level")
    handle = next(row["handle"] for row in tree("Pulse") if row.get("uuid") == "2a38" and "properties" in row)
    same(blescan("read", PULSE, f"0x{handle:04x}", "--json").must(DONE).values, [b"\x01"], "body sensor location")


@test
def read_gives_a_long_value():
    expected = bytes(index & 255 for index in range(512))
    same(blescan("read", PULSE, vendor(1), "--json").must(DONE).values, [expected], "512 bytes")


@test
def read_gives_a_long_value_in_the_smallest_packets():
    same(blescan("read", PULSE, vendor(1), "--mtu", "23", "--json").must(DONE).values[0][:64], bytes(range(64)), "its start")


@test
def write_changes_a_value():
    blescan("write", PULSE, vendor(4), "--hex", "c0ffee").must(DONE)
    same(blescan("read", PULSE, vendor(4), "--json").must(DONE).values, [bytes.fromhex("c0ffee")], "the written value")


@test
def write_changes_a_long_value():
    value = os.urandom(512)
    blescan("write", PULSE, vendor(1), "--hex", value.hex(), "--mtu", "100").must(DONE)
    same(blescan("read", PULSE, vendor(1), "--json").must(DONE).values, [value], "512 written bytes")


@test
def the_longest_value_is_written_and_read_whole_at_either_mtu():
    for mtu in ("23", "517"):
        value = os.urandom(512)
        blescan("write", PULSE, vendor(1), "--hex", value.hex(), "--mtu", mtu).must(DONE)
        for other in ("23", "517"):
            read = blescan("read", PULSE, vendor(1), "--mtu", other, "--json").must(DONE).values
            same(read, [value], f"512 bytes, written at MTU {mtu} and read at MTU {other}")


@test
def write_without_response_arrives():
    blescan("write", PULSE, vendor(3), "--hex", "0a0b0c", "--without-response").must(DONE)
    same(blescan("read", PULSE, vendor(3), "--json").must(DONE).values, [bytes.fromhex("0a0b0c")], "the command's value")


@test
def notify_loses_none_of_a_thousand():
    values = blescan("notify", PULSE, vendor(5), "--count", "1000", "--json").must(DONE).values
    same([struct.unpack_from("<I", v)[0] for v in values], list(range(1000)), "numbers of the notifications")


@test
def notify_receives_indications_and_confirms_them():
    values = blescan("notify", PULSE, vendor(6), "--count", "3", "--json").must(DONE).values
    same(values, [b"one", b"two", b"three"], "indicated values")
    # The peer counts a confirmation only before the next indication, so two are certain when the third has arrived.
    confirmed = struct.unpack("<H", blescan("read", PULSE, vendor(7), "--json").must(DONE).values[0])[0]
    assert confirmed >= 2, f"{confirmed} confirmations arrived"


@test
def trace_prints_every_packet_to_standard_error():
    outcome = blescan("read", PULSE, "2a19", "--trace").must(DONE)
    traced = [line[0] for line in outcome.err.splitlines() if line]
    assert "<" in traced and ">" in traced, outcome.tail
    same(len(outcome.out.splitlines()), 1, "lines of results")


@test
def refusals_name_the_reason():
    for number, words in ((10, ("encryption", "0x0f", "0x05")), (11, ("authentication", "0x05")), (12, ("0x81",))):
        outcome = blescan("read", PULSE, vendor(number)).must(REFUSED)
        assert any(word in outcome.err.lower() for word in words), outcome.tail


@test
def an_unknown_characteristic_is_not_found():
    blescan("read", PULSE, vendor(0x77)).must(NOT_FOUND)


@test
def a_request_without_a_response_ends_at_its_deadline():
    blescan("read", PULSE, vendor(9), "--timeout", "3s").must(TIMED_OUT)


@test
def a_peer_gone_in_the_middle_of_a_request_is_link_loss():
    # The status shows that the deadline did not end it.
    blescan("read", PULSE, vendor(8), "--timeout", "60s").must(LINK_LOST)


@row("L07")
@test
def connecting_to_nobody_ends_in_its_deadline():
    outcome = blescan("read", NOBODY, "2a19", "--timeout", "3s").must(TIMED_OUT)
    assert outcome.seconds > 2.5, f"took {outcome.seconds:.1f} s"
    # Nothing is left: the next connect works.
    blescan("read", PULSE, "2a19").must(DONE)


@test
def a_wrong_address_type_finds_nobody():
    outcome = blescan("read", PULSE.replace("/random", "/public"), "2a19", "--timeout", "3s").must(TIMED_OUT)
    assert outcome.err.strip(), "no explanation"


@test
def a_connect_after_a_finished_active_scan_works():
    # Since kernel 6.10 a finished active scan makes a plain connect() hang.
    blescan("scan", "--count", "1").must(DONE)
    blescan("read", PULSE, "2a19", "--timeout", "60s").must(DONE)


@row("L03")
@test
def a_link_whose_channel_another_program_takes_is_made_by_the_kernel():
    # After an active scan, so that the kernel needs help to find the peer.
    blescan("scan", "--count", "1").must(DONE)
    # Only the faster program gets a channel; a slower one has shown nothing, and retries when the link is gone.
    for attempt in range(5):
        until(lambda: not doing()["links"], "the link of the time before goes on")
        with ChannelTaker() as taker:
            program = Program("read", PULSE, "2a19", "--timeout", "40s", "--json")
            outcome = taker.rob(program, 1).finish()
        if taker.taken:
            break
    same(len(taker.taken), 1, "channels that another program took")
    same(outcome.must(DONE).values, [b"\x4d"], "battery level")
    blescan("read", PULSE, "2a19").must(DONE)


@row("H12")
@test
def scan_survives_a_connect():
    scan = Program("scan", "--json", "--each", "packet")
    scan.wait_for_lines(5)
    blescan("read", SECOND, "2a19").must(DONE)
    seen, address = len(scan.lines), PULSE.split("/")[0]
    scan.wait_for(lambda lines: any(address in line for line in lines[seen:]), "Pulse after the connect")
    scan.interrupt().must(DONE)


@row("W10")
@test
def masked_events_are_switched_on_again():
    scan = Program("scan", "--json", "--each", "packet")
    scan.wait_for_lines(5)
    with CommandSocket() as other:
        other.send(LE_SET_EVENT_MASK, struct.pack("<Q", 0x1F))
        mask, = struct.unpack("<Q", other.next(LE_SET_EVENT_MASK))
        assert mask & 1 << 12 and mask & 0x1F == 0x1F, f"{mask:#x}"
        # It has everything, so no program follows.
        other.send(LE_SET_EVENT_MASK, struct.pack("<Q", mask))
        scan.wait_for_lines(len(scan.lines) + 10)
        other.socket.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            raise AssertionError(f"a mask with everything is set again: {other.next(LE_SET_EVENT_MASK).hex()}")
    scan.interrupt().must(DONE)


@test
def two_peripherals_are_served_at_once():
    # A program that starts while this one reads would end up on the same adapter and must not disturb it.
    first = Program("notify", PULSE, "2a37", "--count", "40", "--json").wait_for_lines(2)
    second = Program("notify", SECOND, "2a19", "--count", "20", "--json").wait_for_lines(2)
    same(len(second.finish().must(DONE).values), 20, "values of the second")
    same(len(first.finish().must(DONE).values), 40, "values of the first")


@test
def link_loss_while_subscribed_is_said():
    program = Program("notify", PULSE, "2a37", "--json").wait_for_lines(2)
    radio("drop 0")
    outcome = program.finish().must(LINK_LOST)
    assert outcome.err.strip(), "no explanation"


@test
def interrupting_a_subscription_ends_it():
    program = Program("notify", PULSE, "2a37", "--json").wait_for_lines(2)
    assert program.interrupt().status in (DONE, 130)
    blescan("read", PULSE, "2a19").must(DONE)


@row("O05")
@test
def a_blocked_radio_is_named():
    switches = rfkill_switches()
    assert switches, "this kernel shows no rfkill switch"
    switches[0].write_text("1")
    try:
        outcome = blescan("scan", "--for", "2s").must(NO_ADAPTER)
        assert "rfkill" in outcome.err.lower(), outcome.tail
    finally:
        switches[0].write_text("0")


@test
def a_missing_adapter_is_named():
    outcome = blescan("scan", "--adapter", "hci7", "--for", "2s").must(NO_ADAPTER)
    assert "hci7" in outcome.err, outcome.tail
    blescan("read", PULSE, "2a19", "--adapter", "hci7").must(NO_ADAPTER)


@row("O01")
@test
def an_adapter_removed_in_the_middle_of_a_scan_ends_it():
    # Otherwise it would continue forever, or end with another status at its time limit.
    scan = Program("scan", "--json", "--each", "packet", "--adapter", "hci0").wait_for_lines(3)
    radio("unplug 0")
    until(lambda: "hci0" not in adapters(), "the adapter is still there")
    outcome = scan.finish().must(NO_ADAPTER)
    assert outcome.err.strip(), "no explanation"


@test
def without_any_adapter_there_is_a_way_out():
    radio("unplug 1")
    until(lambda: adapters() == [], "an adapter is still there")
    outcome = blescan("scan", "--for", "2s").must(NO_ADAPTER)
    assert outcome.err.strip(), "no explanation"


if __name__ == "__main__":
    main()

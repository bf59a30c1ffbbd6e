"""Kernel tests on controllers without extended advertising (LE 4.2), with Bumble's and BlueZ's peripherals."""

import os
import shutil
import time

import bluez
from harness import *
from test_extended import (
    a_link_whose_channel_another_program_takes_is_made_by_the_kernel, explore_shows_the_tree_that_the_peer_has,
    notify_loses_none_of_a_thousand)

BENCH = f"{bluez.address(bluez.ADAPTER)}/public"
LONG_VALUE = bytes(index & 255 for index in range(512))

COURIER, ECHO = "D1:00:00:00:00:04/random", 0x80
TRIALS = "/run/vm/link-trials"  # a copy that an unprivileged user can reach

# The legacy commands and reports take another path through the kernel; the layers above them are only sampled.
tests[:] = [
    explore_shows_the_tree_that_the_peer_has, notify_loses_none_of_a_thousand,
    a_link_whose_channel_another_program_takes_is_made_by_the_kernel]


@test
def legacy_scan_merges_advert_and_scan_response():
    wanted = "localName", "serviceUUIDs", "rssi", "manufacturerData"
    pulse = merged(heard_of({PULSE: wanted}, "--each", "packet"), PULSE, *wanted)
    same(pulse["localName"], "Pulse", "name")
    same(sorted(pulse["serviceUUIDs"]), ["180d", "180f"], "services")
    same(pulse["rssi"], -47, "signal")
    same(pulse["manufacturerData"], {"ffff": "0102"}, "data of the scan response")


@test
def the_kernel_advertises_for_two_programs_by_turns():
    names = "Alpha", "Beta"

    def turns(lines):
        """The names in the order in which they are received, each turn once."""
        found = [o["localName"] for o in map(json.loads, lines) if o.get("localName") in names]
        return [name for at, name in enumerate(found) if at == 0 or found[at - 1] != name]

    with Management() as management:
        programs = [Program("advertise", "--name", name, "--management", "--adapter", "hci0") for name in names]
        try:
            scan = Program("scan", "--each", "packet", "--adapter", "hci1", "--json")
            scan.wait_for(lambda lines: len(turns(lines)) >= 3, "both are not heard by turns")
            scan.interrupt().must(DONE)
        finally:
            outcomes = [program.interrupt() for program in programs]
        for outcome in outcomes:
            outcome.must(DONE)
        numbers = {number for _, number in management.instance_changes()}
        same(len(numbers), 2, "instances")
        for number in numbers:
            management.remove_instance(number, management.INVALID_PARAMETERS)


@test
def centrals_connect_by_one_of_two_instances_of_the_kernel():
    def hears_alpha():
        heard = Program("scan", "--each", "packet", "--adapter", "hci1", "--json")
        heard.wait_for(lambda lines: any('"Alpha"' in line for line in lines), "the other one is not heard")
        heard.interrupt().must(DONE)

    programs = [Program("serve", "management", program=os.environ["LINK_TRIALS"])]
    try:
        programs[0].wait_for(lambda lines: "serving" in lines, "it serves")
        programs.append(Program("advertise", "--name", "Alpha", "--management", "--adapter", "hci0"))
        hears_alpha()
        for _ in range(2):
            read = blescan("read", f"{bluez.address(0)}/public", "2a00", "--adapter", "hci1", "--json").must(DONE).values
            same(read, [b"Workbench"], "device name")
        hears_alpha()
    finally:
        for program in programs:
            program.interrupt()


@test
def bluez_advertises_and_is_found():
    bench = bluez.Peer()
    globals()["bench"] = bench
    wanted = "localName", "serviceUUIDs"
    found = merged(heard_of({BENCH: wanted}, "--each", "packet"), BENCH, *wanted)
    same(found["localName"], bluez.NAME, "name")
    same(found["serviceUUIDs"], ["180f"], "services")


@test
def bluez_is_explored():
    explored = blescan("explore", BENCH, "--json").must(DONE).objects[-1]
    services = {service["uuid"]: service for service in explored["services"]}
    assert {"1800", "1801", bluez.SERVICE} <= set(services), f"services: {sorted(services)}"
    characteristics = {c["uuid"] for c in services[bluez.SERVICE]["characteristics"]}
    same(characteristics, {bluez.VALUE, bluez.LONG, bluez.COMMAND}, "characteristics of the application")


@test
def bluez_values_are_read():
    same(blescan("read", BENCH, bluez.VALUE, "--json").must(DONE).values, [b"\1\2\3"], "short value")
    for mtu in ("23", "517"):
        read = blescan("read", BENCH, bluez.LONG, "--mtu", mtu, "--json").must(DONE).values
        same(read, [LONG_VALUE], f"512 bytes at MTU {mtu}")


@test
def bluez_values_are_written():
    blescan("write", BENCH, bluez.VALUE, "--hex", "0405").must(DONE)
    same(blescan("read", BENCH, bluez.VALUE, "--json").must(DONE).values, [b"\4\5"], "short value")
    value = LONG_VALUE[:300][::-1]
    blescan("write", BENCH, bluez.LONG, "--hex", value.hex(), "--mtu", "60").must(DONE)
    same(blescan("read", BENCH, bluez.LONG, "--json").must(DONE).values, [value], "long value")


@test
def the_longest_value_is_written_to_bluez_and_read_whole_at_either_mtu():
    # bluetoothd 5.66 counts the handle, and a prepared value's offset, as part of a written value, and refuses more
    # than 512 bytes in total. The values that it serves are not limited in this way.
    for mtu, count in (("23", 508), ("517", 510)):
        value = os.urandom(count)
        blescan("write", BENCH, bluez.LONG, "--hex", value.hex(), "--mtu", mtu).must(DONE)
        for other in ("23", "517"):
            read = blescan("read", BENCH, bluez.LONG, "--mtu", other, "--json").must(DONE).values
            same(read, [value], f"{count} bytes, written at MTU {mtu} and read at MTU {other}")


@test
def bluez_takes_a_command():
    # A command has no response, and bluetoothd drops what it has not read when the link ends. The first one that it reads
    # makes it request a descriptor from its application; the link may end before that arrives.
    def has_arrived():
        blescan("write", BENCH, bluez.COMMAND, "--hex", "c0de06", "--without-response").must(DONE)
        return bench.has_printed("AcquireWrite")

    until(has_arrived, "bluetoothctl heard nothing of it")


@test
def bluez_indicates():
    outcome = blescan("explore", BENCH, "--json")
    if "[HCI 0x13]" in outcome.err:
        # bluetoothd removes a device some time after its last link, and ends one that is made meanwhile.
        outcome = blescan("explore", BENCH, "--json")
    explored = outcome.must(DONE).objects[-1]
    handle = next(c["handle"] for s in explored["services"] for c in s["characteristics"] if c["uuid"] == bluez.VALUE)
    # bluetoothctl indicates every value that is written to it; only the link that this program holds can write.
    number = 0
    program = Program("notify", BENCH, bluez.VALUE, "--count", "3", "--json")
    while len(program.lines) < 3 and number < 200 and program.child.poll() is None:
        number += 1
        inject_write_command(handle, bytes([number]))
        time.sleep(0.3)
    outcome = program.finish()
    values = [value[0] for value in outcome.must(DONE).values]
    same(values, sorted(set(values)), "indicated values in order")
    same(len(values), 3, "values")


def what_works(*capabilities):
    """Returns which features of a link an unprivileged user with these capabilities may use, and the errors of the
    others.
    """
    if not os.path.exists(TRIALS):
        shutil.copy(os.environ["LINK_TRIALS"], TRIALS)
    # After a power cycle the kernel no longer assumes an active scan, which would keep a plain connect() waiting.
    control(HCI_DOWN)
    control(HCI_UP)
    program = Program("rights", COURIER, str(ECHO), program=TRIALS, user=PLAIN_USER, capabilities=capabilities)
    return program.finish().must(DONE).out.splitlines()


@row("O15")
@test
def a_plain_user_discovers_and_opens_channels():
    refused = [f"{feature} fails: notPermitted" for feature in ("rssi", "parameters", "phy")]
    same(what_works(), ["discover works", "channel works", *refused], "what works without a capability")


@test
def the_raw_capability_alone_changes_a_link():
    features = ("discover", "channel", "rssi", "parameters", "phy")
    same(what_works(CAPABILITY), [f"{feature} works" for feature in features], "what works with CAP_NET_RAW")


if __name__ == "__main__":
    main()

"""Kernel tests of the peripheral role: blescan serves and advertises on hci0, and centrals use it from hci1."""

import contextlib

import bluez
from harness import *

BELT = f"{bluez.address(0)}/public"
ON_THE_OTHER = "--adapter", "hci1", "--json"


@contextlib.contextmanager
def serving(*arguments):
    """blescan serves on hci0 meanwhile."""
    program = Program("serve", *arguments, "--adapter", "hci0", "--json")
    until(lambda: any("serving" in line for line in program.errors) or program.child.poll() is not None, "it does not serve")
    try:
        yield program
    finally:
        outcome = program.interrupt()
    outcome.must(DONE)


def events(program):
    return [json.loads(line)["event"] for line in program.lines]


@test
def a_central_finds_what_is_advertised_and_reads_it():
    with serving("demo:heart-rate"):
        wanted = "localName", "serviceUUIDs", "flags"
        found = merged(heard_of({BELT: wanted}, "--adapter", "hci1", "--each", "packet"), BELT, *wanted)
        same(found["localName"], "Virtual HRM", "name")
        assert "180d" in found["serviceUUIDs"], found
        same(blescan("read", BELT, "2a38", *ON_THE_OTHER).must(DONE).values, [b"\1"], "body sensor location")


@test
def it_is_on_air_again_after_each_central():
    with serving("demo:heart-rate") as server:
        for _ in range(3):
            same(blescan("read", BELT, "2a38", *ON_THE_OTHER).must(DONE).values, [b"\1"], "body sensor location")
        server.wait_for(lambda lines: events(server).count("disconnected") == 3, "three centrals have gone")
        same(events(server).count("connected"), 3, "centrals")


@test
def values_reach_a_subscriber_on_the_kernels_own_connect():
    control(HCI_DOWN, 1)
    control(HCI_UP, 1)
    with serving("demo:heart-rate") as server:
        # Without a capability the kernel connects by itself.
        outcome = blescan("notify", BELT, "2a37", "--count", "3", "--timeout", "60s", *ON_THE_OTHER, user=PLAIN_USER).must(DONE)
        same(len(outcome.values), 3, "values")
        server.wait_for(lambda lines: "unsubscribed" in events(server), "the subscription has ended")


@test
def another_connect_of_the_adapter_does_not_end_it():
    with serving("demo:heart-rate"):
        # The kernel takes every set off air for its own connect, and hands a link that a command makes to the server's socket.
        same(blescan("read", PULSE, "2a19", "--adapter", "hci0", "--json").must(DONE).values, [b"\x4d"], "battery level")
        same(blescan("read", BELT, "2a38", *ON_THE_OTHER).must(DONE).values, [b"\1"], "body sensor location")


@test
def it_is_back_after_the_adapter_was_off():
    with serving("demo:heart-rate"):
        same(blescan("read", BELT, "2a38", *ON_THE_OTHER).must(DONE).values, [b"\1"], "body sensor location")
        control(HCI_DOWN)
        control(HCI_UP)
        same(blescan("read", BELT, "2a38", *ON_THE_OTHER).must(DONE).values, [b"\1"], "body sensor location")


@test
def serving_needs_no_right_and_advertising_names_the_one_that_it_needs():
    outcome = blescan("serve", "demo:battery", "--adapter", "hci0", user=PLAIN_USER).must(NOT_PERMITTED)
    assert "cap_net_raw" in outcome.err.lower(), outcome.tail
    blescan("serve", "demo:battery", "--no-advertise", "--for", "1s", "--adapter", "hci0", user=PLAIN_USER).must(DONE)


if __name__ == "__main__":
    main()

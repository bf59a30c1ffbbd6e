"""Kernel tests of the peripheral role: blescan serves and advertises on hci0, and centrals use it from hci1."""

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import subprocess

import bluez
from harness import *
from managers import ServiceManager

BELT = f"{bluez.address(0)}/public"
ON_THE_OTHER = "--adapter", "hci1", "--json"
TRIALS = os.environ["LINK_TRIALS"]

SERVED_BONDS, CENTRALS_BONDS = Path("/run/vm/served-bonds"), Path("/run/vm/centrals-bonds")
OPEN, SEALED, GUARDED, SENT = (vendor(number) for number in (0x41, 0x42, 0x43, 0x44))
SAFE = f"""name Safe
service {vendor(0x40)}
  characteristic {OPEN} read = 01
  characteristic {SEALED} read,encrypted = 02
  characteristic {GUARDED} read,authenticated = 03
  characteristic {SENT} read,notify = 04
"""
CHANGING = "2a19", "2b2a"  # the battery level, and the Database Hash, which is over handles too
SETTINGS_OF_ADAPTER, BONDABLE = 0x04, 1 << 4


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


def declared(*arguments):
    """What `explore` shows, without handles, and without the values that depend on these or change."""
    def value(one):
        return None if one["uuid"] in CHANGING else one.get("hex")
    return [
        (service["uuid"], service["primary"], [
            (one["uuid"], one["properties"], value(one), [(each["uuid"], value(each)) for each in one["descriptors"]])
            for one in service["characteristics"]])
        for service in blescan("explore", *arguments, "--json").must(DONE).objects[-1]["services"]]


@test
def a_central_explores_what_the_virtual_device_has():
    with serving("demo:heart-rate"):
        found = declared(BELT, "--adapter", "hci1")
    same(found, declared("demo:heart-rate"), "services, characteristics and descriptors")


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


@row("P33")
@test
def what_a_killed_program_has_left_on_air_is_removed_by_the_next():
    killed = Program("serve", "demo:heart-rate", "--adapter", "hci0", "--json")
    until(lambda: any("serving" in line for line in killed.errors), "it does not serve")
    same(names_heard(BELT, 2), {"Virtual HRM"}, "names while it runs")
    killed.child.send_signal(signal.SIGKILL)
    killed.finish()
    same(names_heard(BELT, 2), {"Virtual HRM"}, "names after it was killed")
    with serving("demo:battery"):
        heard = names_heard(BELT, 2)
        assert heard and "Virtual HRM" not in heard, heard
    same(names_heard(BELT, 2), set(), "names after the next one has ended")


@test
def the_links_of_centrals_outlive_the_program_that_serves_them():
    manager = ServiceManager()
    runs = [manager.start("serve-handed", "1", program=TRIALS, stdin=subprocess.PIPE)]
    runs[0].wait_for(lambda lines: "serving" in lines, "the first run serves")
    central = Program("notify", BELT, "fff1", "--count", "1000", *ON_THE_OTHER, timeout=600)
    central.wait_for(lambda lines: len(lines) >= 5, "values of the first run")
    for number in (2, 3):
        runs[-1].child.stdin.write("\n")
        runs[-1].child.stdin.flush()
        runs[-1].finish().must(0)
        same(sorted(name.split(".")[0] for name, _ in manager.stored), ["bareble-central"] * 2 + ["bareble-listener"], "stored")
        before = len(central.lines)
        runs.append(manager.start("serve-handed", str(number), program=TRIALS, stdin=subprocess.PIPE))
        runs[-1].wait_for(lambda lines: "subscribed fff1 restored" in lines, f"run {number} goes on")
        central.wait_for(lambda lines: len(lines) >= before + 5, f"values of run {number}")
        lines = runs[-1].lines
        assert lines.index("connected restored\n") < lines.index("subscribed fff1 restored\n"), lines
        same(manager.stored, [], "copies of the manager")
    central.interrupt()
    values = [bytes.fromhex(o["hex"]) for o in map(json.loads, central.lines) if "hex" in o]
    same(sorted({value[0] for value in values}), [1, 2, 3], "runs that have sent values")
    same(values, sorted(values), "values in order")
    runs[-1].child.kill()
    runs[-1].finish()


def safe(*arguments, keep=False):
    """A device with protected values, whose bonds are those of the one before with `keep`."""
    if not keep:
        for folder in SERVED_BONDS, CENTRALS_BONDS:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
    declaration = Path("/run/vm/safe.txt")
    declaration.write_text(SAFE)
    return serving(str(declaration), "--bonds", str(SERVED_BONDS), *arguments)


def central(command, *arguments):
    return blescan(command, BELT, *arguments, "--bonds", str(CENTRALS_BONDS), *ON_THE_OTHER)


def is_bondable():
    with Management() as management:
        status, information = management.command(SETTINGS_OF_ADAPTER)
        same(status, 0, "status of Read Controller Information")
        return bool(struct.unpack_from("<I", information, 13)[0] & BONDABLE)


def check_bond_is_used(value, *arguments):
    """The bond outlives the link, and the program that serves."""
    with safe(*arguments, keep=True) as server:
        for _ in range(2):
            same(central("read", value[0]).must(DONE).values, [value[1]], "the protected value")
        same([event for event in events(server) if "pair" in event], [], "pairings with a bond")


@test
def a_central_pairs_by_just_works_and_its_bond_is_used():
    with safe("--pairing", "just-works") as server:
        assert is_bondable(), "the adapter is not bondable"
        same(central("read", OPEN).must(DONE).values, [b"\1"], "the open value")
        central("read", SEALED).must(REFUSED)
        central("pair").must(DONE)
        server.wait_for(lambda lines: "paired" in events(server), "the pairing is reported")
        same(central("read", SEALED).must(DONE).values, [b"\2"], "the encrypted value")
        # Nothing has excluded a man in the middle.
        central("read", GUARDED).must(REFUSED)
        same(events(server).count("paired"), 1, "pairings")
    check_bond_is_used((SEALED, b"\2"))


@test
def a_central_pairs_by_the_passkey_that_is_shown():
    with safe("--pairing", "show") as server:
        # The user of the central types it, on a terminal.
        own, terminal = pty.openpty()
        pairing = subprocess.Popen(
            [BLESCAN, "pair", BELT, "--bonds", str(CENTRALS_BONDS), *ON_THE_OTHER], stdin=terminal, stderr=terminal,
            stdout=subprocess.PIPE, text=True)
        os.close(terminal)
        try:
            passkey = re.compile(r'"event": ?"passkey".*"passkey": ?"(\d{6})"|"passkey": ?"(\d{6})".*"event": ?"passkey"')
            server.wait_for(lambda lines: any(passkey.search(line) for line in lines), "a passkey is shown")
            found = next(passkey.search(line) for line in server.lines if passkey.search(line))
            # What is typed before the question is discarded.
            prompt = b""
            while b"shows" not in prompt:
                assert select.select([own], [], [], WAIT)[0], f"no question: {prompt}"
                prompt += os.read(own, 4096)
            os.write(own, (found[1] or found[2]).encode() + b"\n")
            out, _ = pairing.communicate(timeout=WAIT)
            same(pairing.returncode, DONE, f"status of the central's pairing: {out}")
        finally:
            pairing.kill()
            os.close(own)
        server.wait_for(lambda lines: "paired" in events(server), "the pairing is reported")
        same(central("read", GUARDED).must(DONE).values, [b"\3"], "the authenticated value")
    check_bond_is_used((GUARDED, b"\3"))


@test
def a_central_is_refused_where_none_may_pair():
    with safe() as server:
        assert not is_bondable(), "the adapter is bondable"
        outcome = central("pair")
        assert outcome.status != DONE, outcome.tail
        same(central("read", OPEN).must(DONE).values, [b"\1"], "the open value")
        assert "paired" not in events(server), server.lines


@test
def what_a_bonded_central_has_subscribed_to_is_in_force_after_a_restart():
    with safe("--pairing", "just-works") as server:
        central("pair").must(DONE)
        subscriber = Program("notify", BELT, SENT, "--bonds", str(CENTRALS_BONDS), *ON_THE_OTHER)
        server.wait_for(lambda lines: "subscribed" in events(server), "the central subscribes")
        # One that ends by itself would unsubscribe.
        subscriber.child.kill()
        subscriber.finish()
        server.wait_for(lambda lines: "unsubscribed" in events(server), "its link ends")
    for _ in range(2):
        with safe("--pairing", "just-works", keep=True) as server:
            same(central("read", SEALED).must(DONE).values, [b"\2"], "the protected value")
            server.wait_for(lambda lines: "subscribed" in events(server), "the subscription is in force")
            # A new bond begins with nothing, and this is the old one.
            assert "paired" not in events(server), server.lines


@row("P18")
@test
def a_bonded_central_that_has_lost_its_bond_is_not_paired_again():
    with safe("--pairing", "just-works") as server:
        central("pair").must(DONE)
        shutil.rmtree(CENTRALS_BONDS)
        outcome = central("pair")
        assert outcome.status != DONE, outcome.tail
        server.wait_for(lambda lines: "pairingFailed" in events(server), "the refusal is reported")
        same(events(server).count("paired"), 1, "pairings")


@row("P18")
@test
def a_link_ends_whose_central_has_a_bond_that_is_lost_here():
    with safe("--pairing", "just-works"):
        central("pair").must(DONE)
    shutil.rmtree(SERVED_BONDS)
    with safe("--pairing", "just-works", keep=True) as server:
        outcome = central("read", SEALED)
        assert outcome.status != DONE, outcome.tail
        server.wait_for(lambda lines: "disconnected" in events(server), "the link ends")
        assert "paired" not in events(server), server.lines


@test
def the_adapter_is_as_it_was_afterwards():
    with safe("--pairing", "just-works"):
        assert is_bondable(), "the adapter is not bondable"
    assert not is_bondable(), "the adapter is bondable"


if __name__ == "__main__":
    main()

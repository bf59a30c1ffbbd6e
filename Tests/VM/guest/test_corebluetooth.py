"""Kernel tests of programs that import CoreBluetooth alone, as they are written for iOS (Tests/CoreBluetoothClients), against a peripheral
of Bumble, and against centrals of Bumble and of BlueZ: gatttool and bluetoothctl on hci1.
"""

import contextlib
import shutil

import bluez
from belts import BeltLog
from harness import *
from test_centrals import (
    BONDS, CHANNEL_WITHOUT_AUTHENTICATION, CHANNEL_WITHOUT_ENCRYPTION, FIRST, LONG, OWN, PSM, Shell, attribute, begin, do,
    forget_bonds, gatttool, quiet,
)
from tracing import check_idle

WALK, SCANNERS = os.environ["COREBLUETOOTH_WALK"], os.environ["COREBLUETOOTH_SCANNERS"].split(":")
READ, SENT = b"21.5", b"22.0"  # what the thermometer of the sample returns, and what it sends to a subscriber
tests.clear()


@contextlib.contextmanager
def serving(*arguments, steps, **more):
    """A sample of the peripheral role serves meanwhile; its `steps` end with advertising."""
    program = Program(*arguments, program=WALK, **more)
    try:
        yield program.wait_for(lambda lines: lines == steps, "it advertises")
    finally:
        program.child.kill()
        program.finish()


def thermometer(*arguments, **more):
    return serving("serve", *arguments, steps=["added true", "advertising true"], **more)


def channel_echo(**more):
    return serving("echo", steps=["published true", "advertising true"], **more)


@test
def an_ios_program_finds_reads_and_subscribes_to_a_belt_of_bumble():
    done = Program("read", program=WALK).finish().must(0)
    lines = done.out.splitlines()
    same(
        [line for line in lines if line != "rate"],
        ["ready", "found Belt", "connected", "service 180D", "notifying true", "location 1", "disconnected true"], "steps")
    assert lines.count("rate") >= 3, lines
    assert lines.index("rate") > lines.index("notifying true"), lines


def check_that_a_subscriber_is_idle(*arguments):
    log = BeltLog()
    radio("tell Belt rest")
    try:
        until(lambda: log.count("told to rest") == 1, "the belt does not rest")
        program = Program("keep", *arguments, program=WALK)
        steps = ["ready", "found Belt", "connected", "service 180D", "notifying true", "location 1"]
        try:
            program.wait_for(lambda lines: lines == steps, "it is subscribed")
            check_idle(program.child.pid)
            same(log.count("beat"), 0, "values that the belt has sent")
            # It was subscribed all the time.
            radio("tell Belt beat")
            program.wait_for(lambda lines: lines[:len(steps)] == steps and lines[len(steps):][:1] == ["rate"], "a value comes")
            same([log.count("connected"), log.count("subscribed")], [1, 1], "links and subscriptions")
        finally:
            program.child.kill()
            program.finish()
        # The kernel keeps the link for a moment, and the belt beats on it.
        until(lambda: any(event["event"] == "disconnected" for event in log.links[-1]), "the link does not end")
    finally:
        # Later tests need its beats.
        radio("tell Belt beat")


@test
def an_ios_program_that_is_subscribed_makes_no_system_calls_while_nothing_comes():
    check_that_a_subscriber_is_idle()


# Dispatch looks after the threads of global queues once a second, and not after those of a serial queue.
@test
def an_ios_program_that_is_subscribed_on_a_queue_of_its_own_makes_no_system_calls_while_nothing_comes():
    check_that_a_subscriber_is_idle("queue")


@test
def scanners_find_a_belt_of_bumble_on_the_run_loop_and_in_dispatch_main():
    for scanner in SCANNERS:
        # They print into a pipe, whose buffer is written when it is full.
        program = Program("-oL", scanner, program="stdbuf")
        try:
            program.wait_for(lambda lines: any(line.endswith(" Belt") for line in lines), "it finds the belt")
            same(program.lines[0], "state poweredOn\n", "its first line")
        finally:
            program.child.kill()
            program.finish()
            # The controller goes on scanning for a program that was killed, and its reports wake up each later one.
            control(HCI_DOWN)
            control(HCI_UP)


@test
def an_ios_program_without_rights_for_scans_states_what_to_do():
    # A plain user may not reach the folder of the build.
    program = Program("read", program=shutil.copy(WALK, "/run/vm/corebluetooth-walk"), user=65534)
    try:
        program.wait_for(lambda lines: lines == ["ready"], "it is ready")
        until(lambda: any("CAP_NET_RAW" in line for line in program.errors), "it states what the scan needs")
    finally:
        program.child.kill()
        program.finish()


@test
def an_ios_program_serves_a_central_of_bumble():
    with thermometer() as program:
        do(FIRST, "connect", peer=OWN)
        do(FIRST, "discover")
        same(bytes.fromhex(do(FIRST, "read", uuid="2A1C")), READ, "value that the program returns")
        do(FIRST, "write", uuid="2A1C", value="0102")
        program.wait_for(lambda lines: "written 2" in lines, "the program takes a value")
        do(FIRST, "subscribe", uuid="2A1C")
        program.wait_for(lambda lines: "subscribed true" in lines, "the program notes the subscription")
        do(FIRST, "received", count=1)
        same([bytes.fromhex(value) for value in do(FIRST, "values")], [SENT], "values that it sends")
        do(FIRST, "disconnect")


@test
def an_ios_program_that_serves_a_quiet_subscriber_makes_no_system_calls():
    with thermometer("one") as program:
        do(FIRST, "connect", peer=OWN)
        do(FIRST, "discover")
        do(FIRST, "subscribe", uuid="2A1C")
        do(FIRST, "received", count=1)
        program.wait_for(lambda lines: "subscribed true" in lines, "the program notes the subscription")
        check_idle(program.child.pid)
        same(bytes.fromhex(do(FIRST, "read", uuid="2A1C")), READ, "value that the program returns")
        do(FIRST, "disconnect")


@test
def ios_programs_talk_to_each_other_over_two_adapters():
    control(HCI_UP, index=1)
    with thermometer(env={**os.environ, "BAREBLE_ADAPTER": "hci1"}) as server:
        client = Program("measure", program=WALK, env={**os.environ, "BAREBLE_ADAPTER": "hci0"}).finish().must(0)
        same(client.out.splitlines(), ["connected", "21.5", "written true", "22.0", "disconnected true"], "steps of the central")
        server.wait_for(lambda lines: "subscribed true" in lines and "written 2" in lines, "steps of the peripheral")


@test
def an_ios_program_serves_gatttool():
    with thermometer() as program:
        found = gatttool("--primary").finish().must(DONE).out.splitlines()
        assert "1809" in [line.split("uuid: ")[1][4:8] for line in found], found
        found = gatttool("--characteristics").finish().must(DONE).out.splitlines()
        handle = next(int(line.split("char value handle = ")[1][:6], 16) for line in found if "uuid = 00002a1c" in line)
        read = gatttool("--char-read", f"--handle=0x{handle:04x}").finish().must(DONE).out
        same(bytes.fromhex(read.split(": ")[1]), READ, "value that the program returns")
        gatttool("--char-write-req", f"--handle=0x{handle:04x}", "--value=0102").finish().must(DONE)
        program.wait_for(lambda lines: "written 2" in lines, "the program takes a value")
        # The configuration is the only descriptor.
        listener = gatttool("--char-write-req", f"--handle=0x{handle + 1:04x}", "--value=0100", "--listen")
        try:
            listener.wait_for(lambda lines: any("Notification handle" in line for line in lines), "the value that it sends")
        finally:
            listener.child.kill()
            outcome = listener.finish()
        heard = [line.split("value: ")[1] for line in outcome.out.splitlines() if "Notification handle" in line]
        same([bytes.fromhex(value) for value in heard], [SENT], "values that it sends")
        program.wait_for(lambda lines: "subscribed true" in lines, "the program notes the subscription")


@test
def an_ios_program_lets_a_central_of_bumble_that_has_paired_open_a_channel():
    forget_bonds()
    environment = {**os.environ, "BAREBLE_BONDS": str(BONDS), "BAREBLE_ALLOW_PAIRING": "1"}
    try:
        with channel_echo(env=environment) as program:
            do(FIRST, "connect", peer=OWN)
            do(FIRST, "discover")
            psm = int.from_bytes(bytes.fromhex(do(FIRST, "read", uuid=PSM)), "little")
            refused = begin(FIRST, "echo", psm=psm, value="00")().get("error")
            assert refused in (CHANNEL_WITHOUT_AUTHENTICATION, CHANNEL_WITHOUT_ENCRYPTION), refused
            assert "opened\n" not in program.lines, program.lines
            do(FIRST, "pair")
            same(do(FIRST, "echo", psm=psm, value=LONG.hex()), LONG.hex(), "what comes back")
            program.wait_for(lambda lines: lines[2:] == ["opened", "closed"], "the program notes the channel and its end")
            do(FIRST, "disconnect")
            # The bond's key encrypts the next link.
            do(FIRST, "connect", peer=OWN)
            do(FIRST, "encrypt")
            same(do(FIRST, "echo", psm=psm, value=LONG.hex()), LONG.hex(), "what comes back on the next link")
            do(FIRST, "disconnect")
    finally:
        do(FIRST, "unbond")


def shown(value):
    """Returns `value` as bluetoothctl shows it."""
    return value.hex(" ")


# The last one: bluetoothd removes what others advertise, and may leave the adapters off.
@test
def an_ios_program_serves_bluetoothctl():
    with bluez.Daemon() as daemon:
        until(lambda: "hci1 registered" in Path(daemon.out.name).read_text(errors="replace"), "bluetoothd has not both adapters")
        # The one that listens last gets the links: bluetoothd listens too.
        other = bluez.address(1)
        with thermometer() as program, Shell.on(other) as shell:
            shell.say(f"select {other}", f"Controller {other}")
            shell.say("power on", "power on succeeded")
            shell.say("scan le", "Discovery started")
            shell.expect(f"Device {OWN}")
            shell.say("scan off", "Discovery stopped")
            shell.say(f"connect {OWN}", "Connection successful")
            shell.say("menu gatt", "Menu gatt")
            shell.list_attributes(attribute("2a1c"))
            shell.say(f"select-attribute {attribute('2a1c')}", "char")
            shell.say("read", "Value:")
            shell.expect(shown(READ))
            shell.say("write '0x01 0x02'", "Attempting to write")
            program.wait_for(lambda lines: "written 2" in lines, "the program takes a value")
            # The value may be shown before the response to the call.
            before = shell.say("notify on", "Notify started")
            if shown(SENT) not in before:
                shell.expect(shown(SENT))
            program.wait_for(lambda lines: "subscribed true" in lines, "the program notes the subscription")
            shell.say("notify off", "Notify stopped", "Notifying: no")
            shell.say("back", "Menu main")
            shell.say(f"disconnect {OWN}", "Successful disconnected")


if __name__ == "__main__":
    main(before=quiet)

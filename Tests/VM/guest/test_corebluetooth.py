"""Kernel tests of programs that import CoreBluetooth alone, as they are written for iOS (Tests/CoreBluetoothClients), against a peripheral
and a central of Bumble.
"""

import shutil

from harness import *
from test_centrals import FIRST, OWN, do, quiet

WALK = os.environ["COREBLUETOOTH_WALK"]
tests.clear()


@test
def an_ios_program_finds_reads_and_subscribes_to_a_belt_of_bumble():
    done = Program("read", program=WALK).finish().must(0)
    lines = done.out.splitlines()
    same(
        [line for line in lines if line != "rate"],
        ["ready", "found Belt", "connected", "service 180D", "notifying true", "location 1", "disconnected true"], "steps")
    assert lines.count("rate") >= 3, lines
    assert lines.index("rate") > lines.index("notifying true"), lines


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
    program = Program("serve", program=WALK)
    try:
        program.wait_for(lambda lines: lines == ["added true", "advertising true"], "it advertises")
        do(FIRST, "connect", peer=OWN)
        do(FIRST, "discover")
        same(bytes.fromhex(do(FIRST, "read", uuid="2A1C")), b"21.5", "value that the program returns")
        do(FIRST, "write", uuid="2A1C", value="0102")
        program.wait_for(lambda lines: "written 2" in lines, "the program takes a value")
        do(FIRST, "subscribe", uuid="2A1C")
        program.wait_for(lambda lines: "subscribed true" in lines, "the program notes the subscription")
        do(FIRST, "received", count=1)
        same([bytes.fromhex(value) for value in do(FIRST, "values")], [b"22.0"], "values that it sends")
        do(FIRST, "disconnect")
    finally:
        program.child.kill()
        program.finish()


@test
def ios_programs_talk_to_each_other_over_two_adapters():
    control(HCI_UP, index=1)
    server = Program("serve", program=WALK, env={**os.environ, "BAREBLE_ADAPTER": "hci1"})
    try:
        server.wait_for(lambda lines: lines == ["added true", "advertising true"], "it advertises")
        client = Program("measure", program=WALK, env={**os.environ, "BAREBLE_ADAPTER": "hci0"}).finish().must(0)
        same(client.out.splitlines(), ["connected", "21.5", "written true", "22.0", "disconnected true"], "steps of the central")
        server.wait_for(lambda lines: "subscribed true" in lines and "written 2" in lines, "steps of the peripheral")
    finally:
        server.child.kill()
        server.finish()


if __name__ == "__main__":
    main(before=quiet)

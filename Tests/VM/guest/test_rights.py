"""Kernel tests of privileges: unprivileged users with a capability or none, root, and the caller of sudo."""

import os
import shutil
from pathlib import Path

import bluez
from harness import *

RAW_ALONE = 1 << 13
CALLER = ("\t".join([str(PLAIN_USER)] * 4),) * 2 + (str(PLAIN_USER),)
UNDER_SUDO = {**os.environ, "SUDO_UID": str(PLAIN_USER), "SUDO_GID": str(PLAIN_USER)}


@test
def a_plain_user_with_the_raw_capability_scans_and_reads():
    heard_of({PULSE: ()}, user=PLAIN_USER, capabilities=[CAPABILITY])
    values = blescan("read", PULSE, "2a19", "--json", user=PLAIN_USER, capabilities=[CAPABILITY]).must(DONE).values
    same(values, [b"\x4d"], "battery level")


@row("O15")
@test
def a_plain_user_may_not_scan():
    outcome = blescan("scan", user=PLAIN_USER).must(NOT_PERMITTED)
    assert "cap_net_raw" in outcome.err.lower(), outcome.tail


@test
def a_plain_user_reads_on_an_adapter_that_is_up():
    # After a power cycle the kernel no longer assumes an active scan, which would keep a plain connect() waiting.
    control(HCI_DOWN)
    control(HCI_UP)
    values = blescan("read", PULSE, "2a19", "--json", "--timeout", "20s", user=PLAIN_USER).must(DONE).values
    same(values, [b"\x4d"], "battery level")


@test
def a_plain_user_writes_and_subscribes():
    control(HCI_DOWN)
    control(HCI_UP)
    blescan("write", PULSE, vendor(4), "--hex", "c0ffee", "--timeout", "20s", user=PLAIN_USER).must(DONE)
    outcome = blescan("notify", PULSE, "2a37", "--count", "2", "--json", "--timeout", "20s", user=PLAIN_USER).must(DONE)
    same(len(outcome.values), 2, "values")


@test
def a_plain_user_sees_what_another_scan_has_left():
    # The link of the previous test stays up for two seconds, and this one would use it too.
    until(lambda: not doing()["links"], "the link of the test before goes on")
    blescan("scan", "--count", "1").must(DONE)
    outcome = blescan("read", PULSE, "2a19", "--timeout", "3s", user=PLAIN_USER)
    if kernel_release() >= (6, 10):
        assert "cap_net_raw" in outcome.must(TIMED_OUT).err.lower(), outcome.tail
    else:
        outcome.must(DONE)


def rights(program):
    """Returns the user and the capabilities of each thread of a running program: equal threads count once."""
    found = set()
    for status in Path(f"/proc/{program.child.pid}/task").glob("*/status"):
        try:
            text = status.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has ended meanwhile
        lines = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        capabilities = {int(lines[name], 16) for name in ("CapPrm", "CapEff")}
        found.add((lines["Uid"], lines["Gid"], lines["Groups"].strip(), *capabilities, lines["NoNewPrivs"]))
    return found


def callers_folder():
    """A folder of the unprivileged user, for files that a program creates on that user's behalf."""
    folder = Path("/run/vm/caller")
    folder.mkdir(exist_ok=True)
    os.chown(folder, PLAIN_USER, PLAIN_USER)
    return folder


def must_be_the_callers(path):
    found = path.stat()
    same((found.st_uid, found.st_gid, found.st_mode & 0o777), (PLAIN_USER, PLAIN_USER, 0o600), f"owner and mode of {path.name}")


def must_not_scan():
    stale = [o for o in blescan("doctor", "--no-scan", "--json").objects if "stale" in o.get("id", "")]
    same(stale, [], "scans that were left behind")


@test
def under_sudo_a_scan_is_the_callers_and_can_do_nothing_but_command_the_controller():
    control(HCI_DOWN)
    recording = callers_folder() / "scan.btsnoop"
    scan = Program("scan", "--each", "packet", "--json", "--record", str(recording), env=UNDER_SUDO).wait_to_hear(PULSE)
    same(rights(scan), {(*CALLER, RAW_ALONE, "1")}, "rights of its threads")
    scan.interrupt().must(DONE)
    must_be_the_callers(recording)
    must_not_scan()


@test
def under_sudo_a_connection_and_its_files_are_the_callers():
    cache, recording = callers_folder() / "pulse.cache", callers_folder() / "notify.btsnoop"
    arguments = ["notify", PULSE, "2a37", "--json", "--cache", str(cache), "--record", str(recording)]
    program = Program(*arguments, env=UNDER_SUDO).wait_for_lines(2)
    same(rights(program), {(*CALLER, RAW_ALONE, "1")}, "rights of its threads")
    assert program.interrupt().status in (DONE, 130)
    must_be_the_callers(cache)
    must_be_the_callers(recording)


def serving(*arguments, env=UNDER_SUDO):
    program = Program(*arguments, "--adapter", "hci0", "--json", env=env)
    begun = lambda: any("serving" in line or "advertising" in line for line in [*program.errors, *program.lines])
    until(lambda: begun() or program.child.poll() is not None, "it has not begun")
    return program


@test
def under_sudo_an_advertisement_is_the_callers_and_can_do_nothing_but_command_the_controller():
    control(HCI_DOWN)
    program = serving("advertise", "--name", "Caller")
    same(rights(program), {(*CALLER, RAW_ALONE, "1")}, "rights of its threads")
    program.interrupt().must(DONE)


@test
def under_sudo_services_are_the_callers_and_have_a_right_only_on_air():
    control(HCI_DOWN)
    for arguments, kept in (("--advertise",), RAW_ALONE), (("--no-advertise",), 0):
        program = serving("serve", "demo:battery", *arguments)
        same(rights(program), {(*CALLER, kept, "1")}, f"rights of its threads with {arguments}")
        program.interrupt().must(DONE)


@test
def under_sudo_the_bonds_of_centrals_are_where_those_of_peers_are():
    folder = callers_folder() / "bonds"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    os.chown(folder, PLAIN_USER, PLAIN_USER)
    program = serving("serve", "demo:lock", "--pairing", "just-works", "--bonds", str(folder))
    same(rights(program), {(*CALLER, RAW_ALONE, "1")}, "rights of its threads")
    bonds = "/run/vm/centrals-bonds-of-root"
    shutil.rmtree(bonds, ignore_errors=True)
    arguments = f"{bluez.address(0)}/public", "--adapter", "hci1", "--json"
    blescan("pair", *arguments, "--bonds", bonds).must(DONE)
    program.wait_for(lambda lines: any('"paired"' in line for line in lines), "the pairing is reported")
    for path in folder.iterdir():
        must_be_the_callers(path)
    listed = blescan("bonds", "--bonds", str(folder), "--json", env=UNDER_SUDO).must(DONE).objects
    same(len(listed), 1, "bonds that the caller has")
    program.interrupt().must(DONE)


@test
def under_sudo_the_usual_folder_of_bonds_is_never_roots():
    usual = Path("/var/lib/bareble/bonds")
    # The guest has the host's files, where somebody may have served bonded centrals.
    was_there = usual.exists()
    # Whether this user has a folder of its own or not.
    outcome = blescan(
        "serve", "demo:lock", "--pairing", "just-works", "--adapter", "hci0", "--for", "1s", "--json", env=UNDER_SUDO)
    assert "/var/lib/bareble" not in outcome.err, outcome.tail
    same(usual.exists(), was_there, "root's folder of bonds exists")


@test
def pairing_of_centrals_without_the_right_to_manage_is_one_error_that_names_it():
    folder = callers_folder() / "bonds-without-a-right"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    os.chown(folder, PLAIN_USER, PLAIN_USER)
    outcome = blescan(
        "serve", "demo:lock", "--pairing", "just-works", "--bonds", str(folder), "--adapter", "hci0", user=PLAIN_USER,
        capabilities=[CAPABILITY]).must(NOT_PERMITTED)
    same([line.split(":")[0] for line in outcome.err.splitlines()], ["blescan", "hint"], f"lines of {outcome.tail}")
    assert "cap_net_admin" in outcome.err.splitlines()[0].lower(), outcome.tail
    same(advertising()[0], False, "it advertises")


@row("O35")
@test
def under_sudo_a_diagnosis_is_the_callers_and_can_do_nothing_but_command_the_controller():
    control(HCI_DOWN)
    recording = callers_folder() / "doctor.btsnoop"
    arguments = ["doctor", "--adapter", "hci0", "--json", "--fix", "up", "--connect", PULSE, "--record", str(recording)]
    program = Program(*arguments, "--for", "3s", env=UNDER_SUDO)
    until(lambda: doing()["scanning"] or program.child.poll() is not None, "it does not scan")
    found = rights(program)
    outcome = program.finish().must(DONE)
    # It switches the adapter on after its checks, so it keeps the privilege to do so.
    same(found, {(*CALLER, RAW_ALONE | 1 << 12, "1")}, "rights of its threads")
    findings = {o["id"]: o for o in outcome.objects if "id" in o}
    same(findings["capabilities"]["level"], "ok", "what it was given")
    assert findings.get("kernel-log", {}).get("level") != "skip", "the kernel's log was not read"
    assert "requests" in findings["connect"]["text"], findings["connect"]
    must_be_the_callers(recording)


@row("O35")
@test
def under_sudo_a_diagnosis_unblocks_the_radio():
    switches = rfkill_switches()
    assert switches, "this kernel shows no rfkill switch"
    switches[0].write_text("1")
    try:
        arguments = ["doctor", "--adapter", "hci0", "--no-scan", "--json", "--fix", "rfkill", "--fix", "up"]
        objects = blescan(*arguments, env=UNDER_SUDO).must(DONE).objects
        same([(o["fix"], o["done"]) for o in objects[:2]], [("rfkill", True), ("up", True)], "what was done")
        same(switches[0].read_text().strip(), "0", "the switch")
    finally:
        switches[0].write_text("0")


@test
def under_sudo_no_file_is_made_where_the_caller_may_not():
    outcome = blescan("scan", "--for", "1s", "--record", "/run/vm/scan.btsnoop", env=UNDER_SUDO).must(NOT_PERMITTED)
    assert "sudo" in outcome.err, outcome.tail
    assert not Path("/run/vm/scan.btsnoop").exists(), "the file is there"


@test
def root_itself_scans_with_no_more_than_it_needs():
    scan = Program("scan", "--each", "packet", "--json").wait_for_lines(3)
    same({found[3:] for found in rights(scan)}, {(RAW_ALONE, "1")}, "rights of its threads")
    scan.interrupt().must(DONE)
    must_not_scan()


@test
def an_adapter_that_is_down_is_named_to_a_plain_user():
    control(HCI_DOWN)
    outcome = blescan("scan", "--for", "2s", user=PLAIN_USER, capabilities=[CAPABILITY]).must(NO_ADAPTER)
    assert "down" in outcome.err.lower() or "off" in outcome.err.lower(), outcome.tail


@test
def an_adapter_that_is_down_is_switched_on_by_root():
    control(HCI_DOWN)
    heard_of({PULSE: ()})


@test
def a_plain_user_with_both_capabilities_switches_the_adapter_on():
    control(HCI_DOWN)
    heard_of({PULSE: ()}, user=PLAIN_USER, capabilities=[CAPABILITY, "net_admin"])


@test
def the_right_to_switch_the_adapter_on_is_none_to_scan():
    control(HCI_DOWN)
    outcome = blescan("scan", "--for", "2s", user=PLAIN_USER, capabilities=["net_admin"]).must(NOT_PERMITTED)
    assert "cap_net_raw" in outcome.err.lower(), outcome.tail


if __name__ == "__main__":
    main()

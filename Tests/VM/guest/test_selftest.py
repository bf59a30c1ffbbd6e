"""Kernel tests of `blescan selftest`: on BlueZ's btvirt and on Bumble's controllers, whichever the group has.

What each of them is remarked for is a property of the emulator: btvirt reports an advertisement once, ends connection attempts to
absent peers by itself, and lists commands that it does not have; Bumble's controllers end the links of a reset peer at once.
"""

import tempfile

from harness import *

FIT, REMARKS, UNFIT = 0, 1, 2
BTVIRT = 0x05F1  # the company of its controllers, The Linux Foundation
WITHOUT_PEER = [f"S{n:02}" for n in range(1, 14)]


def selftest(*arguments, **more):
    """Returns the report as an object, and the outcome, whose status has to be that of the verdict."""
    outcome = blescan("selftest", "--adapter", "hci0", "--json", *arguments, **more)
    assert len(outcome.objects) == 1, outcome.tail
    report = outcome.objects[0]
    same(outcome.status, {"fit": FIT, "fit-with-remarks": REMARKS, "unfit": UNFIT}[report["verdict"]], "status")
    same([c["id"] for c in report["checks"]], [f"S{n:02}" for n in range(1, 22)], "the checks")
    return report, outcome


def verdicts(report):
    return {check["id"]: check["verdict"] for check in report["checks"]}


def left_alone(index=0):
    """The adapter is on, and nobody scans with it."""
    objects = blescan("doctor", "--adapter", f"hci{index}", "--no-scan", "--json").objects
    findings = {o["id"]: o for o in objects if "id" in o}
    assert "down" not in findings, findings["down"]
    same(findings["scan-state"]["level"], "ok", f"scan state: {findings['scan-state']}")


@test
def an_adapter_alone_gets_a_verdict():
    report, outcome = selftest()
    found = verdicts(report)
    assert all(found[check] != "not-run" for check in WITHOUT_PEER), found
    assert all(found[f"S{n}"] == "not-run" for n in range(14, 22)), found
    assert report["verdict"] != "unfit", report["remarks"]
    same((report["kernelChoice"]["how"], report["kernelChoice"]["set"]), ("observed", "extended"), "the kernel's choice")
    same(report["kernel"], os.uname().release, "the kernel")
    left_alone()
    return f"{outcome.seconds:.0f} s: {report['verdict']}"


@test
def a_second_adapter_tests_links():
    control(HCI_UP, 1)
    folder = Path(tempfile.mkdtemp())
    recording = folder / "selftest.btsnoop"
    report, outcome = selftest("--peer-adapter", "hci1", "--record", str(recording))
    found = verdicts(report)
    checks = {check["id"]: check for check in report["checks"]}
    assert all(verdict != "not-run" for verdict in found.values()), [c for c in report["checks"] if c["verdict"] == "not-run"]
    for check in ("S14", "S16", "S17", "S18"):
        same(found[check], "fit", f"{check}: {checks[check]['text']} {checks[check]['values']}")
    same(checks["S14"]["values"]["good"], 15, "connects")
    if report["adapter"]["company"] != BTVIRT:
        same(checks["S07"]["values"]["peerAdvertisements"], [1, 2, 3], "the advertisements of hci1 that were heard")
        assert report["verdict"] != "unfit", report["remarks"]
    assert report["limits"]["linksHeld"] >= 5, report["limits"]
    for index in (0, 1):
        left_alone(index)
    # A report becomes a fixture: each link of the recording is a dialogue.
    blescan("replay", str(recording), "--as-fixture", str(folder / "visit")).must(DONE)
    assert len(list(folder.glob("visit*.dialogue"))) > 15, sorted(folder.iterdir())
    return f"{outcome.seconds:.0f} s: {report['verdict']}, {report['remarks']}"


@test
def a_program_with_cap_net_raw_alone_tests_all_but_the_power():
    report, _ = selftest(user=PLAIN_USER, capabilities=(CAPABILITY,))
    choice = report["checks"][3]
    same((choice["verdict"], report["kernelChoice"]["how"]), ("note", "inferred"), "S04")
    assert "CAP_NET_ADMIN" in choice["text"], choice
    blescan("selftest", "--adapter", "hci0", user=PLAIN_USER).must(NOT_PERMITTED)


@test
def interrupting_it_leaves_nothing_behind():
    program = Program("selftest", "--adapter", "hci0")
    program.wait_for(lambda lines: any(line.startswith("S06") for line in lines), "the end of S06")
    outcome = program.interrupt()
    outcome.must(130)
    assert "interrupted during S07" in outcome.out, outcome.tail
    left_alone()


def claimed(purpose, index=0):
    """Takes the name by which programs agree on who switches an adapter, or tests it."""
    information = bytearray(struct.pack("<H", index) + bytes(90))
    with socket.socket(31, socket.SOCK_RAW, 1) as raw:
        fcntl.ioctl(raw, HCI_INFORMATION, information)
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    claim.bind(b"\0bareble-" + purpose + b"-" + bytes(reversed(information[10:16])).hex().upper().encode())
    return claim


@test
def an_adapter_that_another_program_recovers_or_tests_is_not_tested():
    for purpose in (b"recovery", b"selftest"):
        with claimed(purpose):
            blescan("selftest", "--adapter", "hci0").must(TIMED_OUT)
        # Free again, and left on.
        claimed(purpose).close()
        left_alone()


@test
def a_self_test_that_is_ended_leaves_no_claim():
    program = Program("selftest", "--adapter", "hci0")
    program.wait_for(lambda lines: any(line.startswith("S06") for line in lines), "the end of S06")
    claimed(b"recovery").close()
    try:
        claimed(b"selftest").close()
    except OSError as error:
        same(error.errno, errno.EADDRINUSE, "the claim of the test")
    else:
        raise AssertionError("the self-test has no claim")
    program.interrupt().must(130)
    claimed(b"selftest").close()
    left_alone()


@test
def an_adapter_that_is_switched_off_ends_it():
    program = Program("selftest", "--adapter", "hci0")
    program.wait_for(lambda lines: any(line.startswith("S06") for line in lines), "the end of S06")
    control(HCI_DOWN)
    outcome = program.finish()
    outcome.must(UNFIT)
    assert "switched off during S0" in outcome.out, outcome.tail


if __name__ == "__main__":
    main()

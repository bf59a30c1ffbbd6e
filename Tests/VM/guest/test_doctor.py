"""Kernel tests of `blescan doctor`: each finding that real adapters can show, and the effect of `--fix` on it."""

import contextlib
import select
import subprocess

import bluez
from harness import *

SCAN_PARAMETERS, SCAN_ENABLE = 0x2041, 0x2042
# What a controller returns that is not configured: to Reset, Read Local Version Information and Read BD_ADDR.
RETURNED = {0x0C03: bytes(1), 0x1001: bytes.fromhex("00 09 0000 09 0000 0000"), 0x1009: bytes.fromhex("00 665544332211")}


def doctor(*arguments, **more):
    """Returns the findings as JSON objects by their names, with the outcome."""
    shortly = [] if {"--for", "--no-scan"} & set(arguments) else ["--for", "1s"]
    outcome = blescan("doctor", "--adapter", "hci0", "--json", *arguments, *shortly, **more)
    findings = {o["id"]: o for o in outcome.objects if "id" in o}
    return findings, outcome


def doctor_that_sees(word, *arguments):
    """The same, retried with more time without this finding: it listens for a while, and the air may be slow."""
    for seconds in 1, 5, 20, 60:
        findings, outcome = doctor(*arguments, "--for", f"{seconds}s")
        if word in findings:
            break
    assert word in findings, f"no {word}: {outcome.tail}"
    return findings, outcome


def command(raw, opcode, parameters):
    """Sends the controller a command on the kernel's raw socket, and returns its status."""
    raw.send(struct.pack("<BHB", 1, opcode, len(parameters)) + parameters)
    return completion(raw, opcode)


def completion(raw, opcode, seconds=WAIT):
    """Waits until a command of any program has completed, and returns its status."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([raw], [], [], 0.5)[0]:
            event = raw.recv(300)
            if event[1] == 0x0E and struct.unpack_from("<H", event, 4)[0] == opcode:
                return event[6]
    raise AssertionError(f"no response to {opcode:#06x}")


@contextlib.contextmanager
def raw_socket():
    """Opens a raw socket of hci0 that receives Command Complete events."""
    with socket.socket(31, socket.SOCK_RAW, 1) as raw:
        raw.setsockopt(0, 2, struct.pack("<IIIHxx", 1 << 4, 1 << 14, 0, 0))
        bind_to_adapter(raw, 0)
        yield raw


@contextlib.contextmanager
def raw_scan():
    """Starts a scan on a raw socket of this program; it continues when the socket is closed."""
    with raw_socket() as raw:
        same(command(raw, SCAN_PARAMETERS, struct.pack("<BBBBHH", 0, 0, 1, 0, 96, 96)), 0, "status of the parameters")
        same(command(raw, SCAN_ENABLE, struct.pack("<BBHH", 1, 0, 0, 0)), 0, "status of the scan")
        yield raw


@test
def a_good_adapter_passes_every_check():
    findings, outcome = doctor_that_sees("reports")
    outcome.must(DONE)
    same({o["check"] for o in outcome.objects[:-1]}, set(range(1, 17)), "checks")
    # The effect of the kernel's bug and the log depend on the kernel, and what can pair on how the adapter was switched on.
    bad = {word for word, o in findings.items() if o["level"] != "ok"}
    bad -= {"kernel-fault", "kernel-log", "connect", "pairing-off"}
    same(bad, set(), f"what is not good ({outcome.tail})")
    assert "LE" in findings["settings"]["text"] and "power" in findings["settings"]["text"], findings["settings"]
    assert "extended advertising" in findings["features"]["text"], findings["features"]
    same(findings["test-scan"]["text"].count("0x00"), 3, f"good steps in {findings['test-scan']['text']!r}")
    assert "1 address" in findings["reports"]["text"], findings["reports"]


@test
def its_scan_leaves_none_behind_and_spoils_no_connect():
    doctor()[1].must(DONE)
    findings, _ = doctor("--no-scan")
    same(findings["scan-state"]["level"], "ok", f"scan state: {findings['scan-state']}")
    same(findings["test-scan"]["level"], "skip", "test scan")
    # The connect of an unprivileged user is the kernel's own, which an active scan would disturb.
    values = blescan("read", PULSE, "2a19", "--json", "--timeout", "20s", user=PLAIN_USER).must(DONE).values
    same(values, [b"\x4d"], "battery level")


@test
def a_plain_user_sees_what_is_lacking():
    findings, outcome = doctor(user=PLAIN_USER)
    outcome.must(NOT_PERMITTED)
    same(findings["no-capability"]["level"], "fail", "capabilities")
    assert "setcap" in findings["no-capability"]["remedy"], findings["no-capability"]
    # Any user may read settings.
    same(findings["settings"]["level"], "ok", f"settings: {findings['settings']}")
    same(findings["scan-state"]["level"], "skip", "scan state")


@test
def the_raw_capability_alone_is_enough_but_for_switching_on():
    findings, outcome = doctor(user=PLAIN_USER, capabilities=["net_raw"])
    outcome.must(DONE)
    same(findings["no-net-admin"]["level"], "warn", "capabilities")
    same(findings["test-scan"]["level"], "ok", f"test scan: {findings['test-scan']}")


@test
def an_adapter_that_is_down_is_named_and_switched_on_when_asked():
    control(HCI_DOWN)
    findings, outcome = doctor()
    outcome.must(NO_ADAPTER)
    same(findings["down"]["fix"], "up", "the fix offered")
    findings, _ = doctor()
    assert "down" in findings, "a diagnosis without --fix has switched it on"
    objects = doctor("--fix", "up")[1].must(DONE).objects
    same((objects[0]["fix"], objects[0]["done"]), ("up", True), "what was done")
    findings, outcome = doctor("--no-scan")
    outcome.must(DONE)
    assert "down" not in findings, findings["down"]


@test
def a_plain_user_may_not_switch_an_adapter_on():
    control(HCI_DOWN)
    outcome = doctor("--fix", "up", user=PLAIN_USER)[1].must(NOT_PERMITTED)
    same(outcome.objects[0]["done"], False, "what was done")


@test
def a_blocked_radio_is_named_and_unblocked_when_asked():
    switches = rfkill_switches()
    assert switches, "this kernel shows no rfkill switch"
    switches[0].write_text("1")
    try:
        findings, outcome = doctor()
        outcome.must(NO_ADAPTER)
        same(findings["rfkill-soft"]["fix"], "rfkill", "the fix offered")
        same(switches[0].read_text().strip(), "1", "the switch after a diagnosis")
        objects = doctor("--fix", "up", "--fix", "rfkill")[1].must(DONE).objects
        same([(o["fix"], o["done"]) for o in objects[:2]], [("rfkill", True), ("up", True)], "what was done")
        same(switches[0].read_text().strip(), "0", "the switch")
    finally:
        switches[0].write_text("0")


@test
def somebody_elses_scan_is_named():
    with raw_scan() as raw:
        findings, outcome = doctor_that_sees("foreign-scan")
        outcome.must(DONE)
        same(findings["raw-socket"]["level"], "warn", "other users")
        assert "python" in findings["foreign-scan"]["text"], findings["foreign-scan"]
        same(findings["test-scan"]["level"], "skip", "test scan")
        # It has an owner, so nothing ends it.
        objects = doctor("--fix", "stale-scan")[1].must(DONE).objects
        assert "no scan" in objects[0]["text"], objects[0]
        same(command(raw, SCAN_ENABLE, struct.pack("<BBHH", 0, 0, 0, 0)), 0, "status of ending it")


@test
def a_stale_scan_is_named_and_ended_when_asked():
    with raw_scan():
        pass
    findings, outcome = doctor_that_sees("stale-scan")
    outcome.must(DONE)
    same(findings["stale-scan"]["fix"], "stale-scan", "the fix offered")
    # It fixes what it sees, and it listens for a second.
    for _ in range(5):
        objects = doctor("--fix", "stale-scan")[1].must(DONE).objects
        if "ended" in objects[0]["text"]:
            break
    same((objects[0]["fix"], objects[0]["done"]), ("stale-scan", True), "what was done")
    same(doing()["scanning"], False, "whether the controller scans")
    findings, _ = doctor()
    same((findings["scan-state"]["level"], findings["test-scan"]["level"]), ("ok", "ok"), "scan state and test scan")


@test
def links_in_use_are_listed():
    program = Program("notify", PULSE, "2a37", "--json").wait_for_lines(1)
    try:
        findings, outcome = doctor("--no-scan")
        outcome.must(DONE)
        assert PULSE.split("/")[0] in findings["links-in-use"]["text"], findings["links-in-use"]
        report = blescan("doctor", "--adapter", "hci0", "--no-scan", "--report").must(DONE)
        assert PULSE.split("/")[0] not in report.out and "(address 1)" in report.out, report.tail
        assert "guest" not in report.out.replace("(host)", ""), report.tail
    finally:
        program.interrupt()


@test
def a_connection_is_timed():
    # The link of the previous test stays up for two seconds.
    findings, outcome = doctor("--no-scan", "--connect", PULSE)
    outcome.must(DONE)
    assert "MTU" in findings["connect"]["text"] and "requests" in findings["connect"]["text"], findings["connect"]
    findings, outcome = doctor("--no-scan", "--connect", NOBODY)
    outcome.must(TIMED_OUT)
    assert NOBODY in findings["connect-failed"]["text"], findings["connect-failed"]


@test
def a_connection_switches_nothing_on():
    control(HCI_DOWN)
    findings, outcome = doctor("--no-scan", "--connect", PULSE)
    outcome.must(NO_ADAPTER)
    same(findings["connect-failed"]["level"], "fail", "the connection")
    assert "down" in doctor("--no-scan")[0], "the connection has switched it on"


@test
def interrupting_it_leaves_no_scan_behind():
    with raw_socket() as raw:
        program = Program("doctor", "--adapter", "hci0", "--for", "60s")
        same(completion(raw, SCAN_ENABLE), 0, "status of its scan")
        same(program.interrupt().status, 130, "status")
    findings, _ = doctor("--no-scan")
    same(findings["scan-state"]["level"], "ok", f"scan state: {findings['scan-state']}")


@test
def an_adapter_that_another_program_has_to_itself_is_named():
    control(HCI_DOWN)
    with socket.socket(31, socket.SOCK_RAW, 1) as user:
        name = struct.pack("<HHH", 31, 0, 1)
        same(ctypes.CDLL(None, use_errno=True).bind(user.fileno(), name, len(name)), 0, "binding the user channel")
        findings, outcome = doctor()
        outcome.must(NO_ADAPTER)
        assert "python" in findings["taken"]["text"], findings["taken"]


@contextlib.contextmanager
def unconfigured_adapter():
    """Plugs in a controller that the kernel does not switch on before a program has configured it, and gives its name."""
    device = os.open("/dev/vhci", os.O_RDWR)
    ended = threading.Event()
    plugged = threading.Event()
    names = []

    def respond():
        # A blocked read would keep the controller after the device is closed.
        while not ended.is_set():
            if not select.select([device], [], [], 0.1)[0]:
                continue
            packet = os.read(device, 300)
            if packet[0] == 0xFF:
                names.append(f"hci{struct.unpack_from('<H', packet, 2)[0]}")
                plugged.set()
            elif packet[0] == 0x01:
                opcode = struct.unpack_from("<H", packet, 1)[0]
                returned = RETURNED.get(opcode, b"\x01")
                os.write(device, struct.pack("<BBBBH", 4, 0x0E, 3 + len(returned), 1, opcode) + returned)

    thread = threading.Thread(target=respond)
    thread.start()
    try:
        # A vendor packet of the driver: a primary controller, with the quirk of an external configuration.
        os.write(device, b"\xff\x40")
        assert plugged.wait(WAIT), "no controller"
        yield names[0]
    finally:
        ended.set()
        thread.join()
        os.close(device)


@test
def an_adapter_that_is_not_configured_is_named():
    with unconfigured_adapter() as name:
        def findings():
            objects = blescan("doctor", "--adapter", name, "--json", "--no-scan").objects
            return {o["id"]: o for o in objects if "id" in o}

        # The kernel lists it once it has read its versions.
        until(lambda: "unconfigured" in findings(), "it is not named")
        found = findings()
        same(found["unconfigured"]["level"], "fail", "level")
        assert f"btmgmt -i {name} ext-config on" in found["unconfigured"]["remedy"], found["unconfigured"]
        assert "down" not in found, found


@row("O06")
@test
def bluetoothd_is_named():
    peer = bluez.Peer()
    try:
        findings, _ = doctor()
        same(findings["bluetoothd"]["level"], "warn", "other users")
        assert str(peer.daemon.pid) in findings["bluetoothd"]["text"], findings["bluetoothd"]
    finally:
        peer.stop()


@row("O30")
@test
def another_network_namespace_is_named():
    launch = ["unshare", "--net", BLESCAN, "doctor", "--json"]
    done = subprocess.run(launch, capture_output=True, text=True, timeout=PATIENCE)
    same(done.returncode, NO_ADAPTER, f"status ({done.stdout[-500:]})")
    findings = {o["id"]: o for o in map(json.loads, done.stdout.splitlines()) if "id" in o}
    assert "no-sockets" in findings and "container" in findings, sorted(findings)


@test
def a_missing_adapter_is_named():
    radio("unplug 0")
    radio("unplug 1")
    until(lambda: adapters() == [], "an adapter is still there")
    outcome = blescan("doctor", "--json").must(NO_ADAPTER)
    assert any(o.get("id") == "no-adapter" for o in outcome.objects), outcome.tail


if __name__ == "__main__":
    main()

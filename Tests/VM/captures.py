"""What Wireshark and BlueZ's monitor make of the files that test_record.py has recorded in the guest."""

import json
import shutil
import subprocess

FIELDS = (
    "bthci_cmd.opcode", "bthci_evt.code", "bthci_evt.le_meta_subevent", "bthci_evt.bd_addr", "btatt.opcode", "btatt.handle",
    "btatt.value", "_ws.malformed")
FRAGMENTED = "d1:00:00:00:00:03"  # Lighthouse, whose data comes in parts; tshark takes each part for the whole
SCAN_PARAMETERS, SCAN_ENABLE, CREATE_CONNECTION = 0x2041, 0x2042, 0x2043
CONNECTION_COMPLETE, ENHANCED_COMPLETE, EXTENDED_REPORT, DISCONNECTION_COMPLETE = 0x01, 0x0A, 0x0D, 0x05
READ_BY_TYPE_RESPONSE, READ_REQUEST, READ_RESPONSE, GROUP_RESPONSE, WRITE_REQUEST, NOTIFICATION = 9, 10, 11, 17, 18, 27


class Packet:
    """The fields of one packet; each may be there several times."""

    def __init__(self, columns):
        command, event, subevent, self.addresses, attribute, handles, self.values, self.malformed = columns
        self.command, self.event, self.subevent, self.attribute = (
            int(column[0], 0) if column else None for column in (command, event, subevent, attribute))
        self.handles = [int(handle, 0) for handle in handles]


def packets(path):
    options = [part for field in FIELDS for part in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", path, "-T", "fields", *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"tshark cannot read it: {done.stderr[-300:]}")
    return [Packet([c.split(",") if c else [] for c in line.split("\t")]) for line in done.stdout.splitlines()]


def demand(true, what, found):
    if not true:
        raise AssertionError(f"{what}: {found}")


def of_scan(seen, expected):
    commands = [p.command for p in seen if p.command]
    demand(SCAN_PARAMETERS in commands and commands.count(SCAN_ENABLE) >= 2, "begin and end of the scan", commands)
    reports = [p for p in seen if p.subevent == EXTENDED_REPORT]
    demand(any(expected["address"].lower() in p.addresses for p in reports), "no report of the peer", len(reports))


def of_link(seen):
    begins = [p.subevent for p in seen if p.subevent in (CONNECTION_COMPLETE, ENHANCED_COMPLETE)]
    ends = [p.event for p in seen if p.event == DISCONNECTION_COMPLETE]
    demand((len(begins), len(ends)) == (1, 1), "begins and ends of the link", (begins, ends))
    demand(CREATE_CONNECTION in [p.command for p in seen], "command to connect", [p.command for p in seen])


def handles_of(seen, opcode):
    return [handle for p in seen if p.attribute == opcode for handle in p.handles]


def of_read(seen, expected):
    of_link(seen)
    demand(handles_of(seen, READ_REQUEST) == [expected["handle"]], "handles read", handles_of(seen, READ_REQUEST))
    responses = [p.values for p in seen if p.attribute == READ_RESPONSE]
    demand(responses == [[expected["value"]]], "values read", responses)


def of_notify(seen, expected):
    of_link(seen)
    written, told = handles_of(seen, WRITE_REQUEST), handles_of(seen, NOTIFICATION)
    demand(written == [expected["switch"]] * 2, "handles of subscribing and of the end of it", written)
    demand(len(told) >= 3 and set(told) == {expected["handle"]}, "handles told", told)


def of_explore(seen, expected):
    of_link(seen)
    services, values = handles_of(seen, GROUP_RESPONSE), handles_of(seen, READ_BY_TYPE_RESPONSE)
    demand(set(expected["services"]) <= set(services), "services", services)
    demand(set(expected["values"]) <= set(values), "characteristics", values)


def monitored(path, monitor):
    """btmon of BlueZ 5.66 ends at a Read By Type Request, also in its own files, so it is asked only where there is none."""
    done = subprocess.run([monitor, "-r", path], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    demand(done.returncode == 0, "btmon", (done.returncode, done.stderr[-300:]))
    return done.stdout


def check(folder, monitor, show):
    """Checks what is in the folder; returns whether all is well."""
    if not shutil.which("tshark"):
        print("SKIPPED: the recorded sessions: tshark is not installed", flush=True)
        return True
    good = True
    for name, verify in (("scan", of_scan), ("read", of_read), ("notify", of_notify), ("explore", of_explore)):
        what = f"Wireshark{' and btmon' if name in ('scan', 'read') else ''} read the recorded {name}"
        try:
            expected = json.loads((folder / f"{name}.json").read_text())
            seen = packets(folder / f"{name}.btsnoop")
            bad = [number for number, p in enumerate(seen, 1) if p.malformed and FRAGMENTED not in p.addresses]
            demand(seen and not bad, "malformed packets", bad)
            verify(seen, expected)
            if name == "scan":
                told = monitored(folder / "scan.btsnoop", monitor)
                demand("LE Extended Advertising Report" in told, "reports that btmon shows", told[-300:])
            if name == "read":
                told = monitored(folder / "read.btsnoop", monitor)
                demand(f"Handle: 0x{expected['handle']:04x}" in told, "handle that btmon shows", told[-300:])
            show(f"ok {what}: {len(seen)} packets")
        except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            good = False
            show(f"not ok {what}: {' '.join(str(error).split())}")
    return good

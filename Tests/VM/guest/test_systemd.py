"""Kernel tests of the packaged units (Docs/packaging) under this machine's systemd: the service, and the helper for recovery with its socket.

systemd is the first process of a namespace here, with the unmodified packaged unit and empty targets around it.
confined.py attempts in its place what the service must not do: the same unit with another program.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from harness import *

ROOT = Path(__file__).resolve().parents[3]
UNIT = ROOT / "Docs" / "packaging" / "blescan.service"
RECOVER, HELPER_SOCKET = os.environ["BAREBLE_RECOVER"], Path("/run/bareble/recover.socket")
UNITS = Path("/run/vm/units")
OUTPUT = Path("/run/vm/service")
PLAIN = f"[Service]\nStandardOutput=append:{OUTPUT}/%n.out\nStandardError=append:{OUTPUT}/%n.err\n"  # no journal here
RAW, ADMIN = 1 << 13, 1 << 12
FIRST_DYNAMIC, LAST_DYNAMIC = 61184, 65519
ALLOWED = {"a Bluetooth socket", "a file in its own /tmp"}


class ServiceManager:
    """systemd with the units of these tests and no others."""

    def __init__(self):
        for folder in UNITS, OUTPUT:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        for name in "sysinit", "basic", "shutdown", "tests":
            (UNITS / f"{name}.target").write_text(f"[Unit]\nDescription={name}\nDefaultDependencies=no\n")
        groups = Path("/sys/fs/cgroup")
        if not (groups / "cgroup.procs").exists():
            subprocess.run(["mount", "-t", "cgroup2", "none", groups], check=True)
        Path("/run/systemd/private").unlink(missing_ok=True)
        environment = {
            "PATH": os.environ["PATH"], "SYSTEMD_UNIT_PATH": str(UNITS), "SYSTEMD_GENERATOR_PATH": str(UNITS / "generators"),
            "container": "test"}
        self.log = open(OUTPUT / "systemd.log", "w")
        self.child = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "/lib/systemd/systemd", "--system",
             "--unit=tests.target", "--log-target=kmsg", "--log-level=notice", "--show-status=no"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=environment)
        until(lambda: self.ask("is-active", "tests.target") == "active", "systemd does not come up")

    def run(self, *command):
        """Runs a program in systemd's namespace: systemd responds only to processes that it can see."""
        launch = ["nsenter", f"--pid=/proc/{self.child.pid}/ns/pid_for_children", *command, "--no-pager"]
        return subprocess.run(launch, capture_output=True, text=True, timeout=PATIENCE).stdout.strip()

    def ask(self, *command):
        return self.run("systemctl", *command)

    def add(self, name, text):
        (UNITS / name).write_text(text)
        (UNITS / f"{name}.d").mkdir(exist_ok=True)
        (UNITS / f"{name}.d" / "output.conf").write_text(PLAIN)

    def start(self, name, text):
        self.add(name, text)
        self.ask("daemon-reload")
        return self.ask("start", name)

    def show(self, name, *properties):
        lines = self.ask("show", name, f"--property={','.join(properties)}").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()
        self.log.close()


def process_of(program):
    """Returns the one process that runs a program, by its first argument."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().split(b"\0")[0] == str(program).encode():
                return folder
        except OSError:
            pass  # it has ended meanwhile
    return None


def written_by(process):
    """Returns the names of the files and devices that a process has open for writing, without sockets and the like."""
    found = set()
    for entry in (process / "fd").iterdir():
        target = os.readlink(entry)
        flags = re.search(r"^flags:\s+(\d+)", (process / "fdinfo" / entry.name).read_text(), re.M)
        if target.startswith("/") and int(flags[1], 8) & os.O_ACCMODE:
            found.add(Path(target).name)
    return found


def said(name):
    """Returns the output of a service so far, and the end of its errors."""
    out, err = OUTPUT / f"{name}.out", OUTPUT / f"{name}.err"
    return (out.read_text() if out.exists() else ""), (err.read_text()[-500:] if err.exists() else "")


@test
def the_packaged_service_scans_as_nobody_under_systemd():
    program = Path("/usr/bin/blescan")
    shutil.copy(BLESCAN, program)
    program.chmod(0o755)
    control(HCI_DOWN)
    with ServiceManager() as manager:
        name = UNIT.name
        manager.start(name, UNIT.read_text())
        until(lambda: PULSE.split("/")[0] in said(name)[0],
              f"the service hears nothing: {manager.show(name, 'ActiveState', 'Result', 'ExecMainStatus')} {said(name)}")
        same(manager.show(name, "ActiveState", "SubState", "NRestarts"),
             {"ActiveState": "active", "SubState": "running", "NRestarts": "0"}, "the service")
        lines = dict(
            line.split(":\t", 1) for line in (process_of(program) / "status").read_text().splitlines() if ":\t" in line)
        owner = int(lines["Uid"].split()[0])
        assert FIRST_DYNAMIC <= owner <= LAST_DYNAMIC, f"it runs as {owner}"
        # The privilege to switch the adapter on is dropped once that is done.
        same({int(lines[kind], 16) for kind in ("CapPrm", "CapEff")}, {RAW}, "its rights")
        same((lines["NoNewPrivs"], lines["Seccomp"]), ("1", "2"), "no new rights, and a filter of system calls")
        same(written_by(process_of(program)), {f"{name}.out", f"{name}.err"}, "files open for writing")
        assert doing()["scanning"], doing()
        verdict = manager.run("systemd-analyze", "security", name)
        exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", verdict)
        manager.ask("stop", name)
        same(manager.show(name, "ActiveState", "Result"), {"ActiveState": "inactive", "Result": "success"}, "the end")
        same(doing()["scanning"], False, "whether the controller scans")
        same(said(name)[1], "", "standard error")
        # The kernel takes an active scan for unfinished until the adapter was switched off and on, and would delay
        # plain connects.
        control(HCI_DOWN)
        assert exposure and float(exposure[1]) <= 2, f"systemd-analyze security: {verdict[-300:]}"
        return f"exposure {exposure[1]}"


@test
def what_the_packaged_service_needs_not_it_cannot_do():
    trial = Path("/run/vm/confined.py")
    shutil.copy(Path(__file__).with_name("confined.py"), trial)
    text, count = re.subn(r"(?m)^ExecStart=.*$", f"ExecStart=/usr/bin/python3 -I -B {trial}", UNIT.read_text())
    same(count, 1, "commands of the unit")
    with ServiceManager() as manager:
        name = "confined.service"
        manager.start(name, text)
        until(lambda: manager.show(name, "ActiveState")["ActiveState"] in ("inactive", "failed"), "it does not end")
        state = manager.show(name, "Result", "ExecMainStatus")
        same(state, {"Result": "success", "ExecMainStatus": "0"}, f"the end of {said(name)}")
        found = json.loads(said(name)[0])
        same({folder for folder, kept in found["read-only"].items() if not kept}, set(), "folders that it could write to")
        done = {what for what, came in found["attempts"].items() if came == "done"}
        same(done, ALLOWED, f"what it could do of {found['attempts']}")
        same(found["processes"], [], "processes that it sees")
        same(int(found["rights"]["CapBnd"], 16), RAW | ADMIN, "rights that it could ever have")
        return f"{len(found['attempts']) - len(done)} attempts refused"


@test
def the_packaged_helper_takes_a_step_under_systemd():
    """By hand, and started by its socket, with the restrictions of its own unit. Only root's group may connect, as the package comes."""
    program, folder = Path("/usr/sbin/bareble-recover"), HELPER_SOCKET.parent
    shutil.copy(RECOVER, program)
    program.chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)
    by_hand = subprocess.run(["sh", "-c", f"umask 077; exec {program} power hci0"], capture_output=True, text=True, timeout=PATIENCE)
    same((by_hand.returncode, by_hand.stdout), (0, "hci0: power is done; the adapter is on\n"), f"by hand: {by_hand.stderr}")
    same(folder.stat().st_mode & 0o777, 0o755, "who may reach the socket in the folder of the records")
    information = bytearray(92)
    with socket.socket(31, socket.SOCK_RAW, 1) as raw:
        fcntl.ioctl(raw, HCI_INFORMATION, information)
    address = ":".join(f"{byte:02X}" for byte in reversed(information[10:16]))
    with ServiceManager() as manager:
        name = "bareble-recover.socket"
        manager.add("bareble-recover@.service", UNIT.with_name("bareble-recover@.service").read_text())
        (UNITS / name).write_text(UNIT.with_name(name).read_text())
        manager.ask("daemon-reload")
        manager.ask("start", name)
        until(HELPER_SOCKET.is_socket, f"there is no socket: {manager.show(name, 'ActiveState', 'Result')}")
        status = HELPER_SOCKET.stat()
        same((status.st_uid, status.st_gid, status.st_mode & 0o777), (0, 0, 0o660), "who may connect")
        for request, response in (f"power {address}", "done"), ("power 02:00:00:00:00:99", "gone"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.settimeout(PATIENCE)
                client.connect(str(HELPER_SOCKET))
                client.send(request.encode())
                same(client.recv(600).decode(), response, f"the response to {request}, {[said(f.stem) for f in OUTPUT.glob('bareble-*.err')]}")
        manager.ask("stop", name)
    records = sorted(path.name for path in folder.glob("recover-*"))
    same(records, [f"recover-{address.replace(':', '')}{end}" for end in ("", ".lock")], "the records of steps")


if __name__ == "__main__":
    main()

"""Kernel tests of long-running operation: the heart-rate daemon of the examples, links that outlive their program,
cycles, a controller that stops reporting, idle links.
"""

import os
import subprocess
import time
from pathlib import Path

from belts import *
from managers import ServiceManager
from tracing import check_idle

CYCLES = int(os.environ.get("VM_CYCLES", "100"))
CYCLE_PAUSE = max(50, CYCLES // 10)
# kB. 900 cycles after the warm-up were measured to add 4; one object of a link that remained in each would add more
# than this in 50.
MEMORY_TOLERANCE = 128
HCI_DEVICE_INFO = 0x800448D3
LISTENER, RECOVER = os.environ["ADVERTISEMENT_LOGGER"], os.environ["BAREBLE_RECOVER"]
HELPER_SOCKET = Path("/run/bareble/recover.socket")


@test
def the_daemon_loses_its_belt_and_continues_after_the_handshake():
    forget()
    log = BeltLog()
    program = daemon(BELT)
    program.wait_for(beating(1), "first beats")
    radio("drop 0")
    program.wait_for(beating(2), "beats after a lost link")
    radio("off Belt")
    program.wait_for(lambda lines: len(links_in(lines)) >= 3, "the daemon notes that its belt is off")
    time.sleep(5)
    radio("on Belt")
    program.wait_for(beating(3), "beats after the belt was off")
    stop(program)
    check_handshakes(program, log, 3)
    until(lambda: log.count("disconnected") == 3, "the belt knows of the end")
    same(log.count("unsubscribed"), 1, "times that the belt was told to be quiet")


@row("O01", "O04")
@test
def the_daemon_goes_on_when_its_adapter_is_back():
    log = BeltLog()
    program = daemon(BELT)
    program.wait_for(beating(1), "first beats")
    radio("unplug 0")
    program.wait_for(lambda lines: len(links_in(lines)) >= 2, "the daemon notes that its adapter is gone")
    until(lambda: "waiting for the adapter" in "".join(program.errors), "it says what it waits for")
    until(lambda: adapters() == [], "the adapter is gone")
    time.sleep(1)
    radio("plug 0")
    program.wait_for(beating(2), "beats on the adapter that is back")
    set_powered(False)
    program.wait_for(lambda lines: len(links_in(lines)) >= 3, "the daemon notes that its adapter is off")
    time.sleep(1)
    set_powered(True)
    program.wait_for(beating(3), "beats on the adapter that is on again")
    stop(program)
    check_handshakes(program, log, 3)


@test
def the_daemon_is_killed_and_goes_on_with_what_it_has_kept():
    forget()
    program = daemon("--state", str(STATE / "logger"), BELT)
    program.wait_for(beating(1), "first beats")
    until(lambda: (STATE / "logger.state").exists() and len(os.listdir(STATE)) >= 3, "state and cache are written")
    log = BeltLog()
    program.child.kill()
    program.finish()
    # The controller was not notified; the kernel releases a link without an owner by itself.
    until(lambda: log.count("disconnected") == 1, "the kernel ends the link of a program that is no more")
    # From here on only the state names the belt.
    program = daemon("--state", str(STATE / "logger"))
    program.wait_for(beating(1), "beats in the next run")
    check_handshakes(program, log, 1)
    requests = [event for event in log.links[0] if event["event"] == "request"]
    same(requests[2]["handle"], value_handle("2a38"), "the handshake, by a handle that is known")
    same({event["name"] for event in requests[2:]}, {READ, WRITE}, "requests after the one that checks the cache")
    # Repeated, with its successor at once, which may find the link still up.
    program.child.kill()
    program.finish()
    for _ in range(2):
        program = daemon("--state", str(STATE / "logger"))
        program.wait_for(beating(1), "beats in the run after it")
        same(links_in(program.lines)[0][0], "worn chest", "the first line")
        counted = beats_in(program.lines)
        same(counted, sorted(set(counted)), "beats in order, each once")
        # It was stopped the second time, which does not remove the state either.
        stop(program)


# Links that outlive their program

def check_hand_over(log, lines, programs):
    """Checks one link, and that each beat arrives once: the belt counts in the value."""
    same([line.split()[0] for line in lines if line.split()[0] in ("connected", "adopted")],
         ["connected"] + ["adopted"] * (programs - 1), "where the link is from")
    counted = beats_in(lines)
    same(counted, list(range(counted[0], counted[0] + len(counted))), "beats, none lost and none twice")
    same(log.count("connected"), 1, "links")
    same(log.count("subscribed"), 1, "subscriptions")
    same(counted[0], log.beats[0], "the first beat")
    kinds = [event["event"] for event in log.events if event["event"] in ("request", "beat")]
    return counted, kinds


@test
def a_link_goes_on_in_the_program_that_this_one_executes():
    log = BeltLog()
    outcome = Program("execute", "10", "3", BELT, program=TRIALS).finish().must(0)
    counted, kinds = check_hand_over(log, outcome.out.splitlines(), 4)
    # Values that wait when a link is handed over still belong to the program, so there may be more.
    assert len(counted) >= 40, f"{len(counted)} beats of four programs"
    until(lambda: log.count("disconnected") == 1, "the end of the link")
    beats = [index for index, kind in enumerate(kinds) if kind == "beat"]
    same(kinds[beats[9]:beats[38]].count("request"), 0, "requests of the second to the fourth program")


@test
def a_link_that_the_service_manager_keeps_goes_on_in_the_next_run():
    log = BeltLog()
    manager = ServiceManager()
    lines = []
    for run in range(3):
        outcome = manager.start("store", "10", BELT, program=TRIALS).finish().must(0)
        lines += outcome.out.splitlines()
        same(len(manager.stored), 2, "descriptors in the store")
        same(log.count("disconnected"), 0, "ends of the link")
        time.sleep(0.5)
    counted, kinds = check_hand_over(log, lines, 3)
    assert len(counted) >= 30, f"{len(counted)} beats of three runs"
    for name in {name for name, _ in manager.stored}:
        manager.remove(name)
    until(lambda: log.count("disconnected") == 1, "the link ends with its last descriptor")


@test
def the_daemon_is_restarted_by_its_service_manager_and_its_link_stays_up():
    forget()
    log = BeltLog()
    manager = ServiceManager()
    counted = []
    for run in range(3):
        # Given once; afterwards the state names it.
        options = ["--state", str(STATE / "logger")] + [BELT] * (run == 0)
        program = manager.start(*options, program=LOGGER)
        program.wait_for(beating(1), f"beats of run {run}")
        stop(program)
        counted += beats_in(program.lines)
        same(len(manager.stored), 2, "descriptors in the store")
        same(log.count("disconnected"), 0, "ends of the link")
    same(counted, sorted(set(counted)), "beats in order, each once")
    same(log.count("connected"), 1, "links")
    same(log.count("subscribed"), 1, "subscriptions")
    for name in {name for name, _ in manager.stored}:
        manager.remove(name)
    until(lambda: log.count("disconnected") == 1, "the link ends with its last descriptor")


# A controller that stops reporting

class Helper:
    """What a service manager does for the helper program: it starts one with each connection to the socket."""

    def __init__(self, user):
        HELPER_SOCKET.parent.mkdir(exist_ok=True)
        HELPER_SOCKET.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(HELPER_SOCKET))
        os.chown(HELPER_SOCKET, 0, user)
        os.chmod(HELPER_SOCKET, 0o660)
        self.listener.listen(4)
        self.errors = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                done = subprocess.run([RECOVER], stdin=connection, stderr=subprocess.PIPE, text=True)
                self.errors.append(done.stderr.strip())

    def end(self):
        self.listener.close()
        HELPER_SOCKET.unlink(missing_ok=True)


def adapter(index=0):
    """The kernel's description of an adapter: its address, and whether it is on."""
    with socket.socket(31, socket.SOCK_RAW, 1) as raw:
        info = fcntl.ioctl(raw, HCI_DEVICE_INFO, struct.pack("<H", index) + bytes(90))
    return ":".join(f"{byte:02X}" for byte in reversed(info[10:16])), bool(info[16] & 1)


@row("W29")
@test
def a_daemon_hears_again_after_the_helper_has_switched_its_adapter_off_and_on():
    """A daemon that listens with CAP_NET_RAW alone, on a controller that stops reporting; its log says what has helped in one line."""
    control(HCI_UP)
    helper = Helper(1000)
    program = Program("power", program=LISTENER, user=1000, capabilities=("net_raw",), timeout=3 * PATIENCE)
    try:
        program.wait_for_lines(1)
        radio("confuse 0")
        until(lambda: any("the adapter works again" in line for line in program.errors), f"it works again: {program.errors}", 3 * WAIT)
        recovered, = [line for line in program.errors if "the adapter works again" in line]
        assert "after step=power" in recovered, recovered
        heard = len(program.lines)
        program.wait_for_lines(heard + 1)
        same(helper.errors, [f"power {adapter()[0]} links: done"], "what the helper wrote")
        return recovered.strip()
    finally:
        program.child.kill()
        program.finish()
        helper.end()


@test
def the_helper_takes_no_other_request():
    """Each has a response and a line in the journal, and the adapter stays as it is."""
    control(HCI_UP)
    helper = Helper(1000)
    try:
        for request, response in [
                (b"power hci0", b"failed: this is no request"), (b"rescan 00:AA:01:00:00:42", b"failed: this is no request"),
                (b"power 02:00:00:00:00:99", b"gone"), (b"", b"failed: this is no request"), (b"x" * 4000, None),
                (f"usb-port {adapter()[0]}".encode(), b"not applicable"), (f"driver {adapter()[0]}".encode(), b"not applicable")]:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.connect(str(HELPER_SOCKET))
                client.send(request)
                same(client.recv(600) or None, response, f"the response to {request[:40]}")
        same(adapter()[1], True, "whether the adapter is on")
    finally:
        helper.end()


# What must not grow, and what must not happen

def measure(process):
    """Measures the descriptors, the threads and the resident memory (kB) of a process."""
    status = Path(f"/proc/{process}/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return len(os.listdir(f"/proc/{process}/fd")), int(fields["Threads"]), int(fields["VmRSS"].split()[0])


@row("L08")
@test
def connect_disconnect_cycles_leave_nothing_behind():
    """The first cycles are a warm-up: what is loaded, cached and pooled then remains."""
    log = BeltLog()
    program = Program("cycles", str(CYCLES), str(CYCLE_PAUSE), BELT, program=TRIALS, stdin=subprocess.PIPE, timeout=1400)
    found = []
    for cycle in range(0, CYCLES + 1, CYCLE_PAUSE):
        program.wait_for(lambda lines: f"cycle {cycle}" in lines, f"cycle {cycle}", 400)
        found.append(measure(program.child.pid))
        program.child.stdin.write("\n")
        program.child.stdin.flush()
    program.finish().must(0)
    figures = f"{CYCLES} cycles, (descriptors, threads, kB) each {CYCLE_PAUSE}: {found}"
    same({counted[0] for counted in found}, {found[0][0]}, f"descriptors; {figures}")
    # The pool may start a thread for each processor at any time; one per cycle, or per few cycles, would exceed that.
    threads = [counted[1] for counted in found]
    assert max(threads) <= min(threads) + os.cpu_count(), f"threads; {figures}"
    grown = found[-1][2] - found[1][2]
    assert grown <= MEMORY_TOLERANCE, f"{grown} kB more; {figures}"
    same(log.count("connected"), CYCLES, "links")
    return figures


# Idle links

@test
def ten_idle_links_make_no_system_calls():
    radio("on Crowd")
    program = Program("idle", *CROWD, program=TRIALS, timeout=300)
    try:
        program.wait_for(lambda lines: sum(line.startswith("began ") for line in lines) == 10, "ten subscriptions")
        check_idle(program.child.pid)
        same(len(program.lines), 10, "lines that it wrote")
    finally:
        program.child.kill()
        program.finish()
        radio("off Crowd")


if __name__ == "__main__":
    main()

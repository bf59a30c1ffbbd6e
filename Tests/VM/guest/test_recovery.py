"""Kernel tests of recovery without a restart (promise P11): one daemon, and the events that its adapter may undergo.

Unplugging and switching off are in test_daemon.py. Ten links are lost at once.
"""

import contextlib
import subprocess

import bluez
import locks
from belts import *
from test_serving import serving

HCI_RESET_IOCTL, HCI_RESET = 0x400448CB, bytes([1, 0x03, 0x0C, 0])
NIGHT = 8 * 3600  # seconds
tests.clear()


def recovers(program, link, what, seconds=WAIT):
    """Waits until the daemon reports the loss of its link, and beats arrive on the next one."""
    program.wait_for(lambda lines: len(links_in(lines)) >= link, f"the daemon notes {what}")
    program.wait_for(beating(link), f"beats after {what}", seconds)


def send_to_controller(packet, index=0):
    with socket.socket(31, socket.SOCK_RAW, 1) as raw:
        bind_to_adapter(raw, index)
        raw.send(packet)


@contextlib.contextmanager
def running(*options):
    """Runs the daemon until its first beats, on a freshly started adapter; both are removed after the test, passed
    or not.
    """
    control(HCI_DOWN)
    control(HCI_UP)
    program = daemon(*options)
    try:
        yield program.wait_for(beating(1), "first beats")
    finally:
        program.child.kill()
        program.finish()


@row("H15")
@test
def the_daemon_goes_on_after_a_reset_past_the_kernel():
    """A command to the controller that the kernel did not send, and an error of the controller, to which the kernel
    responds.
    """
    forget()
    log = BeltLog()
    with running(BELT) as program:
        send_to_controller(HCI_RESET)
        recovers(program, 2, "a reset by a raw command")
        radio("error 0 0x42")
        recovers(program, 3, "a hardware error")
        stop(program)
        check_handshakes(program, log, 3)


@row("H15")
@test
def the_daemon_goes_on_after_a_reset_by_the_kernel():
    """After HCIDEVRESET the kernel sends no more LE data until the adapter was switched off and on: it loses the
    number of packets that the controller can buffer. So links come up on which no request receives a response; the
    daemon continues to connect, and recovers after the switch.
    """
    with running(BELT) as program:
        control(HCI_RESET_IOCTL)
        program.wait_for(lambda lines: len(links_in(lines)) >= 2, "the daemon notes the reset")
        time.sleep(10)
        same(program.child.poll(), None, "the daemon's end")
        went_on_by_itself = beating(2)([line.rstrip("\n") for line in program.lines])
        control(HCI_DOWN)
        control(HCI_UP)
        program.wait_for(beating(len(links_in(program.lines))), "beats after a switch of the adapter")
        stop(program)
        return f"by itself: {went_on_by_itself}"


@row("O05")
@test
def the_daemon_goes_on_after_rfkill():
    """No connection attempt while it is blocked; unblocking alone leaves an adapter off, so the test switches it on."""
    switches = rfkill_switches()
    assert switches, "this kernel shows no rfkill switch"
    log = BeltLog()
    with running(BELT) as program:
        try:
            switches[0].write_text("1")
            program.wait_for(lambda lines: len(links_in(lines)) >= 2, "the daemon notes that its adapter is blocked")
            until(lambda: "waiting for the adapter" in "".join(program.errors), "it says what it waits for")
            said = len(program.errors)
            time.sleep(5)
            same(len(program.errors), said, f"lines while it is blocked: {program.errors[said:]}")
        finally:
            switches[0].write_text("0")
        set_powered(True)
        recovers(program, 2, "rfkill")
        stop(program)
        check_handshakes(program, log, 2)


@row("O19")
@test
def the_daemon_goes_on_after_the_machine_went_to_sleep():
    """Suspends the machine to memory, with everything else switched off, and wakes it by a clock that has advanced
    by a night (bed.py): the boot clock jumps. The kernel ends links and scans before; a scan of another program
    continues as well, without a restart.
    """
    log = BeltLog()
    radio("on Crowd 0")
    with running(BELT) as program:
        scan = Program("scan", "--json", "--each", "packet", timeout=300)
        try:
            scan.wait_for_lines(3)
            slept = sleep_for_a_night()
            heard = len(scan.lines)
            recovers(program, 2, "the night")
            scan.wait_for_lines(heard + 3)
            same(scan.child.poll(), None, "the scan's end")
            links = len(links_in(program.lines))
            stop(program)
            check_handshakes(program, log, links)
            scan.interrupt().must(DONE)
            return f"{slept:.0f} s, {links} links"
        finally:
            scan.child.kill()
            scan.finish()
            radio("off Crowd 0")


@contextlib.contextmanager
def on_air_again(what):
    """Waits until hci0 advertises as a peripheral has begun it once more since."""
    until(lambda: advertising()[0], f"it is not on air before {what}")
    _, before = advertising()

    def is_on_air_again():
        is_on, begun = advertising()
        return is_on and begun > before

    yield
    until(is_on_air_again, f"it is not on air after {what}")


@row("H15", "O05")
@test
def a_peripheral_is_on_air_again_after_resets_and_rfkill():
    """The kernel's own reset is included: for advertisements no switch of the adapter has to follow it."""
    switch = rfkill_switches()[0]
    with serving("demo:heart-rate"):
        with on_air_again("a reset by a raw command"):
            send_to_controller(HCI_RESET)
        with on_air_again("a hardware error"):
            radio("error 0 0x42")
        with on_air_again("a reset by the kernel"):
            control(HCI_RESET_IOCTL)
        with on_air_again("rfkill"):
            switch.write_text("1")
            until(lambda: not advertising()[0], "the kernel does not switch it off")
            switch.write_text("0")
            set_powered(True)


@row("O19")
@test
def a_peripheral_is_on_air_again_after_a_night():
    with serving("demo:heart-rate"), on_air_again("the night"):
        slept = sleep_for_a_night()
    return f"{slept:.0f} s"


@row("O19")
@test
def bonds_outlive_a_night():
    """K23: the kernel ends the link before it sleeps; the next one is encrypted with the stored key, without a pairing."""
    locks.forget_everything()
    with locks.beginning() as trial:
        trial.connect()
        trial.pair()
        log = locks.LockLog()
        slept = sleep_for_a_night()
        log.wait("disconnected")
        trial.do(f"disconnect {locks.LOCK}")
        trial.do("ready")
        trial.connect()
        same(bytes.fromhex(trial.do(f"read {locks.LOCK} {locks.SEALED}")), b"encrypted", "the value")
        log.check_encrypted()
        return f"{slept:.0f} s"


def sleep_for_a_night():
    """Suspends the machine to memory; returns the number of seconds by which the boot clock has leapt."""
    ahead = boot_clock_ahead()
    Path("/sys/power/mem_sleep").write_text("deep")
    Path("/sys/power/state").write_text("mem")
    slept = boot_clock_ahead() - ahead
    assert abs(slept - NIGHT) < 600, f"the boot clock leapt by {slept:.0f} s"
    return slept


def boot_clock_ahead():
    """Returns the number of seconds by which the clock that runs during suspend is ahead of the one that does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


@row("O06", "O07")
@test
def bluetoothd_comes_and_goes_under_the_daemon():
    """It also takes the adapter, configures it again and receives the same events."""
    log = BeltLog()
    with running(BELT) as program:
        def settled(what):
            """Checks that beats continue, on this link or on the next one, and again after a further loss of the
            link.
            """
            seen = len(beats_in(program.lines))
            program.wait_for(lambda lines: len(beats_in(lines)) >= seen + 3, f"beats {what}")
            link = len(links_in(program.lines))
            radio("drop 0")
            recovers(program, link + 1, f"a lost link {what}")

        with bluez.Daemon() as others:
            settled("beside bluetoothd")
            others.stop()
            # It may leave the adapter off; then another program switches it on.
            set_powered(True)
            settled("after bluetoothd")
        stop(program)
        links = len(links_in(program.lines))
        check_handshakes(program, log, links)
        return f"{links} links"


@test
def another_program_scans_under_the_daemon():
    """An active scan of another program, by commands and by the kernel's management, while links are lost and
    reconnected.
    """
    log = BeltLog()
    with running(BELT) as program:
        link = 1
        for command in (["hcitool", "lescan", "--duplicates"], ["btmgmt", "find", "-l"]):
            with open("/run/vm/scanner.log", "w") as out:
                other = subprocess.Popen(
                    [bluez.program(command[0]), *command[1:]], stdin=subprocess.PIPE, stdout=out, stderr=out,
                    env=bluez.environment())
            until(lambda: doing()["scanning"] or other.poll() is not None, f"{command[0]} does not scan")
            link += 1
            radio("drop 0")
            recovers(program, link, f"a lost link beside {' '.join(command)}")
            other.kill()
            other.wait()
        # The remains of those scans: a controller that keeps scanning, and a kernel that takes it for discovering.
        link += 1
        radio("drop 0")
        recovers(program, link, "a lost link after the scans of others")
        stop(program)
        check_handshakes(program, log, link)


@row("O32")
@test
def the_daemon_ends_in_full_flow():
    """It ends within two seconds of SIGTERM, with the link down and its state stored. The guest's clock counts its
    instructions (bed.py): the load of the host has no effect on it.
    """
    forget()
    with running("--state", str(STATE / "logger"), BELT) as program:
        began = time.monotonic()
        stop(program)
        took = time.monotonic() - began
        assert took <= 2, f"it took {took:.1f} s to end"
        until(lambda: doing()["links"] == [] and not doing()["scanning"], "the controller has a link, or scans")
        assert (STATE / "logger.state").exists(), f"nothing is kept: {os.listdir(STATE)}"
        return f"{took:.2f} s"


@test
def ten_links_at_once_are_lost_at_once_and_come_back():
    radio("on Crowd")
    program = Program("idle", *CROWD, program=TRIALS, timeout=300)

    def began(times):
        return lambda lines: all(lines.count(f"began {peer}") >= times for peer in CROWD)

    try:
        program.wait_for(began(1), "ten subscriptions")
        same(len(doing()["links"]), 10, "links of the controller")
        started = time.monotonic()
        radio("drop 0")
        program.wait_for(began(2), "ten subscriptions after all links were lost")
        same(len(doing()["links"]), 10, "links of the controller")
        return f"{time.monotonic() - started:.1f} s until all ten were back"
    finally:
        program.child.kill()
        program.finish()
        radio("off Crowd")


if __name__ == "__main__":
    main()

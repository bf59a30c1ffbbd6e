"""Kernel tests on controllers with BR/EDR and LE (BlueZ's btvirt), whose LE side is off until it is switched on."""

from harness import *


def doctor(*arguments):
    outcome = blescan("doctor", "--adapter", "hci0", "--for", "1s", "--json", *arguments)
    return {o["id"]: o for o in outcome.objects if "id" in o}, outcome


@test
def low_energy_that_is_off_is_named_and_switched_on_when_asked():
    for attempt in range(2):
        findings, outcome = doctor()
        outcome.must(NO_ADAPTER)
        same(findings["le-off"]["fix"], "le", f"the fix offered by diagnosis {attempt}")
    objects = doctor("--fix", "le")[1].must(DONE).objects
    same((objects[0]["fix"], objects[0]["done"]), ("le", True), "what was done")
    findings, outcome = doctor("--fix", "le")
    outcome.must(DONE)
    same(findings["settings"]["text"], "switched on: power, LE, BR/EDR", "settings")
    assert "no adapter" in outcome.objects[0]["text"], outcome.objects[0]


# Those of the self-test come after it: the kernel makes an adapter bondable that is switched off and on.
import test_selftest  # noqa: E402

# After the links of that one, btvirt reports connections that there are already, without an end: the guest comes to nothing else.
tests.remove(test_selftest.a_second_adapter_tests_links)


if __name__ == "__main__":
    main()

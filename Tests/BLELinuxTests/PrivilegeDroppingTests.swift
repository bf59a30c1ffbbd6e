import Testing

@testable import BLELinux

/// What becomes of the process is seen from outside: tests of `blescan`, and of the kernel's Bluetooth.
@Suite struct PrivilegeDroppingTests {
    private struct Variables: Sendable {
        let user: String?
        let group: String?
        let caller: Privileges.Caller?
    }

    @Test(arguments: [
        Variables(user: "1000", group: "100", caller: .init(user: 1000, group: 100)),
        Variables(user: "1000", group: "0", caller: .init(user: 1000, group: 0)),
        Variables(user: "4294967294", group: "1", caller: .init(user: .max - 1, group: 1)),
        // Root called it, as `sudo` in a script of root's does.
        Variables(user: "0", group: "0", caller: nil),
        Variables(user: nil, group: "100", caller: nil),
        Variables(user: "1000", group: nil, caller: nil),
        Variables(user: "", group: "100", caller: nil),
        Variables(user: "-1", group: "100", caller: nil),
        Variables(user: "4294967295", group: "100", caller: nil),
        Variables(user: "1000", group: "4294967296", caller: nil),
        Variables(user: "1000 ", group: "100", caller: nil),
        Variables(user: "me", group: "100", caller: nil),
    ])
    private func whoCalledSudo(_ variables: Variables) {
        #expect(Privileges.Caller(user: variables.user, group: variables.group) == variables.caller)
    }
}

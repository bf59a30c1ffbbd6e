import Testing

@testable import BLELinux

/// The effects on the process are tested from outside: by tests of `blescan`, and of the kernel's Bluetooth.
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
    private func theCallerIsReadFromTwoVariables(_ variables: Variables) {
        #expect(Privileges.Caller(user: variables.user, group: variables.group) == variables.caller)
    }

    /// What doas(1), pkexec(1), run0(1) and sudo(8) say that they leave in the environment. The user `nobody` is 65534
    /// on Debian, and so is the group.
    @Test(
        arguments: [
            (["SUDO_UID": "1000", "SUDO_GID": "100"], .init(user: 1000, group: 100, tool: .sudo)),
            (["DOAS_USER": "nobody"], .init(user: 65534, group: 65534, tool: .doas)),
            (["PKEXEC_UID": "65534"], .init(user: 65534, group: 65534, tool: .pkexec)),
            // Root has called them.
            (["DOAS_USER": "root"], nil), (["PKEXEC_UID": "0"], nil),
            // Nobody whom the machine knows.
            (["DOAS_USER": "no such user"], nil), (["PKEXEC_UID": "4000000000"], nil), (["PKEXEC_UID": "-1"], nil),
            // The last one counts, which would have left out the others' variables.
            (["SUDO_UID": "0", "SUDO_GID": "0", "DOAS_USER": "nobody"], nil), ([:], nil),
        ] as [([String: String], Privileges.Caller?)])
    func theCallerIsReadFromTheEnvironmentOfEachProgram(_ environment: [String: String], _ caller: Privileges.Caller?) {
        #expect(Privileges.Caller { environment[$0] } == caller)
    }
}

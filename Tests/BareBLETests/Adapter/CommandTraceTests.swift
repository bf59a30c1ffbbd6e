import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import TestSupport
import Testing

/// The commands of this program to a controller that does as the specification says: each costs time on real ones, so a
/// change of them has to be a decision.
@Suite(.timeLimit(.minutes(10))) struct CommandTraceTests {
    @Test func aBluetooth5ControllerReceivesTheseCommands() async throws {
        let commands = try await trace(of: .bluetooth5)
        #expect(
            commands == [
                "scan": [
                    "LE Read Local Supported Features", "Read Local Supported Commands", "Read BD_ADDR",
                    "LE Set Event Mask", "LE Set Extended Scan Enable 00", "LE Set Extended Scan Parameters",
                    "LE Set Extended Scan Enable 01", "LE Set Extended Scan Enable 00",
                ],
                "connect": ["LE Extended Create Connection"],
                "disconnect": ["Disconnect"],
                "rescan": [
                    "LE Set Extended Scan Enable 00", "LE Set Extended Scan Parameters",
                    "LE Set Extended Scan Enable 01", "LE Set Extended Scan Enable 00",
                ],
            ])
    }

    @Test func aBluetooth4ControllerReceivesTheseCommands() async throws {
        let commands = try await trace(of: .bluetooth4)
        #expect(
            commands == [
                "scan": [
                    "LE Read Local Supported Features", "Read Local Supported Commands", "Read BD_ADDR",
                    "LE Set Event Mask", "LE Set Scan Enable 00", "LE Set Scan Parameters", "LE Set Scan Enable 01",
                    "LE Set Scan Enable 00",
                ],
                "connect": ["LE Create Connection"],
                "disconnect": ["Disconnect"],
                "rescan": [
                    "LE Set Scan Enable 00", "LE Set Scan Parameters", "LE Set Scan Enable 01",
                    "LE Set Scan Enable 00",
                ],
            ])
    }

    /// The kernel removes a link from its list after programs have read the event of its end.
    @Test func aLinkThatHasEndedIsNotTakenForOneThatIsUp() async throws {
        let sent = Sent()
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let peer = try #require(await radio.id(of: radio.add(.heartRate)))
            let last = Lock<ConnectionHandle?>(nil)
            var configuration = Configuration()
            configuration.traceHCI = { sent.add($0) }
            let central = Central(configuration, radio: radio) { system in
                let handles = system.linkHandle
                system.linkHandle = { index, address in
                    let now = handles(index, address)
                    return last.withLock { last in
                        last = now ?? last
                        return last
                    }
                }
            }
            for step in ["first", "second"] {
                sent.begin(step)
                let device = try await central.connect(peer)
                #expect(try await device.read(0x2A38) == [1])
                await device.disconnect()
            }
        }
        for step in ["first", "second"] {
            #expect(sent.commands[step]?.count { $0 == "LE Extended Create Connection" } == 1)
        }
    }

    /// The names of the commands of each step, with the first octet of those that switch a scan.
    private func trace(of personality: VirtualPersonality) async throws -> [String: [String]] {
        let sent = Sent()
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            await radio.add(.heartRate)
            var configuration = Configuration()
            configuration.traceHCI = { packet in sent.add(packet) }
            let central = Central(configuration, radio: radio)
            sent.begin("scan")
            let peer = try #require(try await central.collect(.services(0x180D), for: .seconds(2)).first?.peer)
            sent.begin("connect")
            let device = try await central.connect(peer)
            _ = try await device.read(0x2A38)
            sent.begin("disconnect")
            await device.disconnect()
            sent.begin("rescan")
            _ = try await central.collect(.services(0x180D), for: .seconds(2))
        }
        return sent.commands
    }

    private final class Sent: Sendable {
        private let state = Lock<(step: String, commands: [String: [String]])>(("", [:]))

        var commands: [String: [String]] { state.withLock { $0.commands } }

        func begin(_ step: String) { state.withLock { $0.step = step } }

        func add(_ packet: TracedHCIPacket) {
            guard packet.isOutgoing, packet.type == .command, packet.bytes.count >= 3 else { return }
            let opcode = HCIOpcode(rawValue: UInt16(packet.bytes[0]) | UInt16(packet.bytes[1]) << 8)
            let isSwitch = opcode == .leSetScanEnable || opcode == .leSetExtendedScanEnable
            let name = (opcode.name ?? "?") + (isSwitch ? " " + Hex.encode(packet.bytes[3..<4]) : "")
            state.withLock { $0.commands[$0.step, default: []].append(name) }
        }
    }
}

import BLECore
import BLELinux
import TestSupport
import Testing

@testable import BareBLETestKit

/// Packets of any kind, in any order, with links that begin and end: nothing traps, commands have one response each,
/// and nothing is due for a link that has ended.
@Suite("Virtual management with any input", .timeLimit(.minutes(5)))
struct VirtualManagementFuzzTests {
    /// What a machine's actions come to, without a radio.
    private struct Owner {
        var machine = VirtualManagement(seed: 7)
        var steps: [VirtualManagement.Step] = []
        /// The links, and those that are to be encrypted.
        var links: Set<VirtualManagement.LinkName> = []
        var encrypting: Set<VirtualManagement.LinkName> = []
        /// Responses and pairing ends, by socket.
        var responses = 0
        var pairEnds = 0

        mutating func perform(_ actions: [VirtualManagement.Action]) {
            for action in actions {
                switch action {
                case .send(let packet, _):
                    let code = packet.first ?? 0
                    guard code == 1 || code == 2, packet.count > 7 else { continue }
                    if packet[6] == 0x19 { pairEnds += 1 } else { responses += 1 }
                case .setPower(let adapter, let isUp):
                    if !isUp { for link in links where link.adapter == adapter { end(link, .localHostTerminated) } }
                    perform(machine.powerChanged(adapter, isUp))
                case .encrypt(let link, _): encrypting.insert(link)
                case .disconnect(let link): end(link, .localHostTerminated)
                case .schedule(_, let step): steps.append(step)
                case .encrypted(let link, _, _), .reportEncryption(let link), .wait(let link), .proceed(let link),
                    .show(let link, _):
                    #expect(links.contains(link))
                case .enableLowEnergy, .endGrace, .command: continue
                }
            }
        }

        mutating func end(_ link: VirtualManagement.LinkName, _ reason: HCIStatus) {
            links.remove(link)
            encrypting.remove(link)
            perform(machine.linkEnded(link, reason))
        }
    }

    private static let commands: [UInt8] = [
        0x01, 0x03, 0x04, 0x05, 0x09, 0x0B, 0x0D, 0x13, 0x14, 0x15, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F,
        0x21,
        0x2A, 0x2D, 0x2F, 0x30, 0x3B, 0x3D, 0x3F, 0x46, 0x48, 0x54, 0x55, 0xEE,
    ]
    private static let lengths: [UInt8: Int] = [
        0x05: 1, 0x09: 1, 0x0B: 1, 0x0D: 1, 0x14: 7, 0x18: 1, 0x19: 8, 0x1A: 7, 0x1B: 8, 0x1C: 7, 0x1D: 7, 0x1E: 11,
        0x1F: 7, 0x21: 71, 0x2A: 1, 0x2D: 1, 0x2F: 17, 0x3B: 1, 0x3F: 1, 0x54: 18, 0x55: 3,
    ]

    @Test("Nothing traps, and each command has one response", arguments: 0..<20)
    func eachRandomCommandHasOneResponse(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &numbers) }
        var owner = Owner()
        owner.perform(owner.machine.adapterAdded(0, BluetoothAddress(rawValue: 1), isUp: false))
        for socket in 0..<3 { owner.machine.opened(UInt64(socket), isTrusted: true) }
        let peer = ManagementPeer(KernelSecurityBench.id)
        var sent = 0
        var pairsSent = 0
        for _ in 0..<2_000 {
            switch below(8) {
            case 0 where owner.links.count < 3:
                let link = VirtualManagement.LinkName(adapter: 0, handle: UInt16(below(4)))
                guard owner.links.insert(link).inserted else { continue }
                var security = VirtualSecurity(capability: VirtualSecurity.Capability.allCases[below(5)])
                security.hasSecureConnections = below(2) == 0
                security.response = [.accept, .accept, .accept, .refuse, .reject, .ignore][below(6)]
                security.identity =
                    below(2) == 0 ? VirtualIdentity(KernelSecurityBench.id, key: [UInt8(below(3))]) : nil
                let described = security
                owner.perform(owner.machine.linkBegan(link, KernelSecurityBench.id) { described })
            case 1 where !owner.links.isEmpty && below(4) == 0:
                if let link = owner.links.sorted(by: { $0.handle < $1.handle }).first {
                    owner.end(link, [.connectionTimeout, .remoteUserTerminated, .micFailure][below(3)])
                }
            case 2 where !owner.steps.isEmpty:
                owner.perform(owner.machine.stepDue(owner.steps.remove(at: below(owner.steps.count))))
            case 3:
                guard let link = owner.links.min(by: { $0.handle < $1.handle }) else { continue }
                if owner.encrypting.remove(link) != nil {
                    let status: HCIStatus = below(3) == 0 ? .keyMissing : .success
                    owner.perform(owner.machine.encryptionEnded(link, status, isKernels: true))
                } else if below(2) == 0 {
                    owner.perform(owner.machine.requestLevel(.init(rawValue: UInt8(below(6))), of: link) ?? [])
                } else {
                    let request = VirtualSecurityRequest(isBonding: below(2) == 0, isAuthenticated: below(2) == 0)
                    owner.perform(owner.machine.securityRequested(link, request))
                }
            default:
                let code = Self.commands[below(Self.commands.count)]
                let isGeneral = code == 1 || code == 3
                var writer = ByteWriter()
                let isAboutPeer = (0x14...0x21).contains(code) && code != 0x15 && code != 0x18
                if isAboutPeer { writer.managementPeer(peer) }
                let length = (Self.lengths[code] ?? 0) + (below(20) == 0 ? 1 : 0)
                while writer.bytes.count < length { writer.u8(UInt8(below(4))) }
                // Mostly a valid byte after the peer.
                let parameters = Array(writer.bytes.prefix(length))
                let command = ManagementPacket(
                    code: UInt16(code), adapter: isGeneral ? nil : 0, parameters: parameters)
                if code == 0x19 { pairsSent += 1 } else { sent += 1 }
                owner.perform(owner.machine.received(command.bytes, from: UInt64(below(3))))
            }
        }
        // What waits for the end of a link has it now.
        for link in owner.links { owner.end(link, .connectionTimeout) }
        // And what waits for a link, with the adapter.
        owner.perform(owner.machine.adapterRemoved(0))
        #expect(owner.responses == sent)
        #expect(owner.pairEnds == pairsSent)
        // Bytes that are no packets.
        for _ in 0..<500 {
            let bytes = (0..<below(80)).map { _ in UInt8(below(256)) }
            owner.perform(owner.machine.received(bytes, from: 0))
        }
    }
}

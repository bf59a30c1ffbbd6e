import BLECore
import BLELinux
import TestSupport
import Testing

@testable import blescan

/// Doctor's facts from the management interface's responses and the monitor's packets.
@Suite struct ManagementInterfaceTests {
    /// Read Controller Information's response, from the layout of mgmt.h.
    private static let information: [UInt8] =
        [0x01, 0x00, 0x03, 0x00, 0x1B, 0x01, 0x04, 0x00, 0x00]
        + [0x02, 0x1A, 0x9B, 0x70, 0xF3, 0x5C, 0x09, 0x0F, 0x00, 0xFF, 0xBE, 0x00, 0x00, 0x81, 0x0A, 0x00, 0x00]
        + [UInt8](repeating: 0, count: 3 + 249 + 11)

    /// Returns the facts after the kernel's end has sent these packets.
    private func facts(after packets: [[UInt8]]) async throws -> ManagementFacts? {
        let (near, far) = try LinkSocket.pair()
        var socket = ManagementSocket(adopting: near)
        let kernel = HCISocket(adopting: far)
        for packet in packets { #expect(kernel.send(packet) == .sent) }
        return await ManagementInterface.facts(of: 3, from: &socket)
    }

    @Test(.row("O31")) func informationIsFoundAmongOthers() async throws {
        // Damaged, of another adapter, of another command, and Index Added.
        let others: [[UInt8]] = [
            [1, 0, 3], [2, 0, 4, 0, 3, 0, 4, 0, 0x11], [2, 0, 3, 0, 3, 0, 5, 0, 0x14], [4, 0, 3, 0, 0, 0],
        ]
        let facts = try #require(try await facts(after: others + [Self.information]))
        #expect(facts == ManagementFacts(version: 9, company: 15, supported: 0xBEFF, current: 0x0A81))
        #expect(facts.has(.powered) && facts.has(.lowEnergy) && !facts.has(.privacy) && facts.can(.privacy))
    }

    @Test(.row("O31")) func aRefusalIsNoFact() async throws {
        // Command Status with Invalid Index, as for an adapter that another program uses exclusively.
        #expect(try await facts(after: [[2, 0, 3, 0, 3, 0, 4, 0, 0x11], Self.information]) == nil)
        #expect(
            try await facts(after: [Array(Self.information.prefix(4)) + [4, 0, 4, 0, 0, 0], Self.information]) == nil)
    }

    /// Lists and information in the layouts of mgmt.h: adapters 1 and 2; the first lacks its address, and the second
    /// does not respond with information.
    @Test func unconfiguredAdaptersAreListed() async throws {
        let (near, far) = try LinkSocket.pair()
        var socket = ManagementSocket(adopting: near)
        let kernel = HCISocket(adopting: far)
        for packet in [
            [0x01, 0, 0xFF, 0xFF, 9, 0, 0x36, 0, 0, 2, 0, 1, 0, 2, 0],
            [0x01, 0, 1, 0, 13, 0, 0x37, 0, 0, 0x31, 0x01, 2, 0, 0, 0, 2, 0, 0, 0],
            [0x02, 0, 2, 0, 3, 0, 0x37, 0, 0x11],
        ] as [[UInt8]] {
            #expect(kernel.send(packet) == .sent)
        }
        #expect(
            await ManagementInterface.unconfigured(from: &socket) == [
                1: ConfigurationFacts(company: 305, missing: 2), 2: ConfigurationFacts(),
            ])
    }

    @Test func anOldKernelListsNone() async throws {
        let (near, far) = try LinkSocket.pair()
        var socket = ManagementSocket(adopting: near)
        // Unknown Command.
        #expect(HCISocket(adopting: far).send([0x02, 0, 0xFF, 0xFF, 3, 0, 0x36, 0, 0x01]) == .sent)
        #expect(await ManagementInterface.unconfigured(from: &socket).isEmpty)
    }

    @Test func openersAreRead() throws {
        func opener(_ channel: UInt8, _ index: [UInt8], _ name: String) throws -> SocketOpener? {
            let text = Array(name.utf8) + [UInt8](repeating: 0, count: 16 - name.utf8.count)
            let packet = [14, 0] + index + [30, 0] + [7, 0, 0, 0, channel, 0, 2, 22, 0, 1, 0, 0, 0, 16] + text
            guard case .controlOpen(let socket) = try MonitorPacket(packet.span) else { return nil }
            return SocketOpener(socket)
        }
        #expect(try opener(0, [1, 0], "hcitool") == SocketOpener(program: "hcitool", kind: .raw, adapter: 1))
        #expect(try opener(1, [0, 0], "bumble") == SocketOpener(program: "bumble", kind: .user, adapter: 0))
        #expect(
            try opener(2, [0xFF, 0xFF], "bluetoothd") == SocketOpener(program: "bluetoothd", kind: .management))
        #expect(try opener(9, [0, 0], "new") == nil)
    }
}

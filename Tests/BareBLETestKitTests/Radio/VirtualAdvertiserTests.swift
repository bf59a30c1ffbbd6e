import BLECore
import BareBLETestKit
import Testing

/// A virtual controller's advertising, by commands whose bytes are from Core Vol 4 Part E, 7.8.
struct VirtualAdvertiserTests {
    private let address = BluetoothAddress(rawValue: 0x1122_3344_5566)

    /// Sends a command, and returns the status of its response.
    private func send(_ controller: inout VirtualController, _ opcode: UInt16, _ parameters: [UInt8]) -> UInt8? {
        let bytes = [UInt8(opcode & 0xFF), UInt8(opcode >> 8), UInt8(parameters.count)] + parameters
        guard let command = try? HCICommandPacket(bytes.span) else { return nil }
        for case .send(let event) in controller.received(command) {
            // Command Complete: type, code, length, number of commands, opcode, status.
            if event.count >= 7, event[1] == 0x0E { return event[6] }
        }
        return nil
    }

    private static let legacyParameters: [UInt8] = [0xA0, 0, 0xF0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0]

    private static func parameters(_ handle: UInt8, _ properties: UInt8, ownType: UInt8 = 0) -> [UInt8] {
        [handle, properties, 0, 0xA0, 0, 0, 0xF0, 0, 0, 7, ownType, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 1, 0, 1, 0, 0]
    }

    private static let padded: [UInt8] = [3, 2, 1, 6] + [UInt8](repeating: 0, count: 28)

    @Test func oneAdvertiserIsSetUpAndEnabled() throws {
        var controller = VirtualController(address: address, isExtended: false)
        #expect(send(&controller, 0x2006, Self.legacyParameters) == 0)
        #expect(send(&controller, 0x2008, Self.padded) == 0)
        #expect(controller.advertiser.setsOnAir.isEmpty)
        #expect(send(&controller, 0x200A, [1]) == 0)
        let set = try #require(controller.advertiser.setsOnAir.first)
        #expect(set.data == [2, 1, 6] && set.interval == .milliseconds(100) && set.isConnectable && !set.isExtended)
        #expect(send(&controller, 0x2006, Self.legacyParameters) == 0x0C, "not while it is on air")
        #expect(send(&controller, 0x2008, [0] + [UInt8](repeating: 0, count: 31)) == 0, "data may change")
        #expect(controller.advertiser.setsOnAir.first?.data == [])
        #expect(send(&controller, 0x200A, [0]) == 0)
        #expect(controller.advertiser.setsOnAir.isEmpty)
    }

    @Test func wrongParametersOfOneAdvertiserAreRefused() {
        var controller = VirtualController(address: address, isExtended: false)
        var short = Self.legacyParameters
        short[0] = 0x1F
        #expect(send(&controller, 0x2006, short) == 0x12, "19.4 ms")
        #expect(send(&controller, 0x2006, Array(Self.legacyParameters.dropLast())) == 0x12)
        #expect(send(&controller, 0x2008, [32] + [UInt8](repeating: 0, count: 31)) == 0x12)
        #expect(send(&controller, 0x2008, [3, 2, 1, 6]) == 0x12, "not padded")
        var random = Self.legacyParameters
        random[5] = 1
        #expect(send(&controller, 0x2006, random) == 0)
        #expect(send(&controller, 0x200A, [1]) == 0x12, "there is no random address")
        #expect(send(&controller, 0x2005, [1, 2, 3, 4, 5, 0xC6]) == 0)
        #expect(send(&controller, 0x200A, [1]) == 0)
        #expect(send(&controller, 0x2005, [9, 2, 3, 4, 5, 0xC6]) == 0x0C, "not while it is used")
    }

    @Test func aControllerTakesOneKindOfCommands() {
        var controller = VirtualController(address: address, isExtended: true)
        #expect(send(&controller, 0x2036, Self.parameters(0xE0, 0x13)) == 0)
        #expect(send(&controller, 0x2006, Self.legacyParameters) == 0x0C)
        controller.reset()
        #expect(send(&controller, 0x2006, Self.legacyParameters) == 0)
        #expect(send(&controller, 0x2036, Self.parameters(0xE0, 0x13)) == 0x0C)
        var old = VirtualController(address: address, isExtended: false)
        #expect(send(&old, 0x2036, Self.parameters(0xE0, 0x13)) == 0x01)
    }

    @Test func setsAreKeptApart() throws {
        var controller = VirtualController(address: address, isExtended: true)
        #expect(send(&controller, 0x2037, [0xE0, 3, 1, 1, 0]) == 0x42, "there is no such set")
        #expect(send(&controller, 0x2036, Self.parameters(0xE0, 0x13)) == 0)
        #expect(send(&controller, 0x2036, Self.parameters(0xE1, 0x00)) == 0)
        #expect(send(&controller, 0x2037, [0xE0, 3, 1, 3, 2, 1, 6]) == 0)
        #expect(send(&controller, 0x2038, [0xE0, 3, 1, 2, 1, 9]) == 0)
        #expect(send(&controller, 0x2038, [0xE1, 3, 1, 2, 1, 9]) == 0x12, "it is not scannable")
        #expect(send(&controller, 0x2037, [0xE1, 1, 1, 100] + [UInt8](repeating: 7, count: 100)) == 0)
        #expect(send(&controller, 0x2037, [0xE1, 2, 1, 100] + [UInt8](repeating: 8, count: 100)) == 0)
        #expect(send(&controller, 0x2039, [1, 2, 0xE0, 0, 0, 0, 0xE1, 0, 0, 0]) == 0)
        let sets = controller.advertiser.setsOnAir
        #expect(sets.map(\.handle) == [0xE0, 0xE1])
        #expect(sets.first?.data == [2, 1, 6] && sets.first?.scanResponse == [1, 9])
        #expect(sets.last?.data.count == 200 && sets.last?.isExtended == true && sets.last?.isConnectable == false)
        #expect(send(&controller, 0x2036, Self.parameters(0xE0, 0x13)) == 0x0C)
        #expect(send(&controller, 0x203C, [0xE0]) == 0x0C)
        #expect(send(&controller, 0x203D, []) == 0x0C)
        #expect(send(&controller, 0x2037, [0xE1, 1, 1, 1, 7]) == 0x0C, "a part of the data of a set on air")
        #expect(send(&controller, 0x2039, [0, 0]) == 0, "all")
        #expect(controller.advertiser.setsOnAir.isEmpty)
        #expect(send(&controller, 0x203C, [0xE0]) == 0)
        #expect(send(&controller, 0x203C, [0xE0]) == 0x42)
        #expect(send(&controller, 0x203D, []) == 0)
        #expect(send(&controller, 0x2039, [1, 1, 0xE1, 0, 0, 0]) == 0x42)
    }

    @Test func setsAreLimited() {
        var controller = VirtualController(address: address, isExtended: true)
        for handle in UInt8(0)..<UInt8(VirtualAdvertiser.setLimit) {
            #expect(send(&controller, 0x2036, Self.parameters(handle, 0x13)) == 0)
        }
        #expect(send(&controller, 0x2036, Self.parameters(0x10, 0x13)) == 0x07)
        #expect(send(&controller, 0x2036, Self.parameters(0xF0, 0x13)) == 0x12)
        #expect(send(&controller, 0x2036, Self.parameters(0, 0x03)) == 0x12, "extended PDUs are never both")
        #expect(send(&controller, 0x2037, [0, 3, 1, 32] + [UInt8](repeating: 0, count: 32)) == 0x12, "a legacy PDU")
    }

    @Test func aCentralTakesItsSetOffAir() throws {
        var controller = VirtualController(address: address, isExtended: true)
        for handle: UInt8 in [0xE0, 0xE1] {
            #expect(send(&controller, 0x2036, Self.parameters(handle, 0x13)) == 0)
            #expect(send(&controller, 0x2039, [1, 1, handle, 0, 0, 0]) == 0)
        }
        let peer = PeerID(address: BluetoothAddress(rawValue: 0xC000_0000_0001), type: .random)
        let parameters = ConnectionParameters(intervalMin: 24, intervalMax: 24, latency: 0, timeout: 500)
        let (handle, actions) = controller.centralConnects(peer, by: 0xE1, parameters, rssi: -50)
        #expect(controller.advertiser.setsOnAir.map(\.handle) == [0xE0])
        let events = actions.compactMap { if case .send(let event) = $0 { event } else { nil } }
        // The role is 1, and the second event names the set and the link.
        #expect(events.first?[3...8] == [0x0A, 0, UInt8(handle), 0, 1, 1])
        #expect(events.last == [0x04, 0x3E, 6, 0x12, 0, 0xE1, UInt8(handle), 0, 0])
    }

    @Test func withoutRoomForALinkNoneIsOffered() {
        var controller = VirtualController(address: address, isExtended: true)
        controller.linkLimit = 0
        #expect(send(&controller, 0x2036, Self.parameters(0, 0x13)) == 0)
        #expect(send(&controller, 0x2036, Self.parameters(1, 0x10)) == 0)
        #expect(send(&controller, 0x2039, [1, 1, 0, 0, 0, 0]) == 0x09)
        #expect(send(&controller, 0x2039, [1, 1, 1, 0, 0, 0]) == 0, "one that is not connectable needs none")
    }
}

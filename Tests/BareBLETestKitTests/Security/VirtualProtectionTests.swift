import BLECore
import BareBLE
import Testing

@testable import BareBLETestKit

/// Spec: Core Vol 3 Part C, 10.3.1, table 10.2.
@Suite("Virtual protection")
struct VirtualProtectionTests {
    private static let device = VirtualDevice(
        name: "Lock",
        services: [
            VirtualService(
                0xFFF0,
                [
                    VirtualCharacteristic(0xFFF1, [.read, .write], value: [1], protection: .encrypted),
                    VirtualCharacteristic(0xFFF2, .read, value: [2], protection: .authenticated),
                    VirtualCharacteristic(0xFFF3, [.notify], protection: .encrypted.keySize(16)),
                ])
        ])

    /// Handles: 3 and 5 the first two values, 7 the third, 8 its configuration.
    static let accesses: [(VirtualLinkSecurity, isBonded: Bool, request: String, response: String)] = [
        (.none, false, "0a0300", "010a030005"),
        (.none, true, "0a0300", "010a03000f"),
        (.none, true, "0a0500", "010a05000f"),
        (.none, false, "12030009", "0112030005"),
        (.none, false, "1603000000 09", "0116030005"),
        (.none, false, "0c03000000", "010c030005"),
        (.none, false, "0e03000500", "010e030005"),
        (.none, false, "20 0300 0500", "0120030005"),
        (.none, false, "08 0100ffff f1ff", "0108030005"),
        (.none, false, "1208000100", "0112080005"),
        (.init(), false, "0a0300", "0b01"),
        (.init(), false, "12030009", "13"),
        (.init(), true, "0a0500", "010a050005"),
        (.init(keySize: 7), false, "0a0300", "0b01"),
        (.init(keySize: 7), false, "1208000100", "011208000c"),
        (.init(keySize: 16), false, "1208000100", "13"),
        (.init(isAuthenticated: true), false, "0a0500", "0b02"),
        (.init(isAuthenticated: true), false, "08 0100ffff f2ff", "0903050002"),
        // Declarations are open.
        (.none, false, "10 0100ffff 0028", "110601000800f0ff"),
        (.none, false, "04 0200 0200", "050102000328"),
    ]

    @Test("An access is rejected for what the link lacks", arguments: accesses)
    func anAccessIsRejectedForWhatTheLinkLacks(
        _ security: VirtualLinkSecurity, _ isBonded: Bool, _ request: String, _ response: String
    ) throws {
        var server = AttributeServer(Self.device)
        #expect(server.secure(security, isBonded: isBonded).isEmpty)
        #expect(try server.received(Hex.decode(request)) == [Hex.decode(response)])
    }

    @Test("A device without a radio is protected as well, until its link is secured")
    func aloneDevice() async throws {
        try await VirtualTime.run { time in
            let lock = VirtualPeripheral(Self.device, time: time)
            let central = Central(time: time)
            let device = try await central.attach(descriptor: lock.connect())
            do {
                _ = try await device.read(0xFFF2)
                Issue.record("read without encryption")
            } catch let error as BLEError {
                #expect(error.code == .insufficientSecurity && error.attError == .insufficientAuthentication)
            }
            await lock.setLinkSecurity(VirtualLinkSecurity(isAuthenticated: true))
            #expect(try await device.read(0xFFF2) == [2])
            await device.disconnect()
            await time.settle()
            _ = try await central.attach(descriptor: lock.connect())
            #expect(await lock.linkSecurity == .none)
        }
    }
}

import BLECore
import BLELinux
import BareBLE
import BareBLECrypto
import BareBLETestKit
import Testing

/// A radio with one device that pairs, and a central that keeps bonds.
struct SecurityBench {
    static let identity = PeerID(address: BluetoothAddress(rawValue: 0x1122_3344_55C6), type: .public)

    let radio: VirtualRadio
    let device: VirtualPeripheral
    /// The device's first address on the air.
    let id: PeerID
    let bonds: BondStore
    let central: Central

    init(
        _ time: VirtualTime, _ security: VirtualSecurity = VirtualSecurity(), isPrivate: Bool = false,
        protection: VirtualProtection = .encrypted, bonds: BondStore = .inMemory,
        change: (inout VirtualDevice) -> Void = { _ in }, configure: (inout SecurityConfiguration) -> Void = { _ in },
        trace: (@Sendable (TracedHCIPacket) -> Void)? = nil
    ) async throws {
        radio = VirtualRadio(time: time)
        var security = security
        if isPrivate { security.identity = VirtualIdentity(Self.identity, key: Array(0x20...0x2F)) }
        device = await radio.add(Self.described(security, protection, change))
        if isPrivate { await radio.rotateAddress(of: device) }
        id = try #require(await radio.id(of: device))
        self.bonds = bonds
        central = Self.central(radio, bonds, configure, change: { $0.traceHCI = trace })
    }

    /// A device with a protected value that it also sends.
    static func described(
        _ security: VirtualSecurity, _ protection: VirtualProtection = .encrypted,
        _ change: (inout VirtualDevice) -> Void = { _ in }
    ) -> VirtualDevice {
        var device = VirtualDevice(
            name: "Lock",
            services: [
                VirtualService(
                    0xFFF0,
                    [
                        VirtualCharacteristic(0xFFF1, [.read, .notify], value: [7], protection: protection),
                        VirtualCharacteristic(0xFFF2, [.read, .notify], value: [8]),
                    ])
            ])
        device.security = security
        change(&device)
        return device
    }

    static func central(
        _ radio: VirtualRadio, _ bonds: BondStore, _ configure: (inout SecurityConfiguration) -> Void = { _ in },
        change: (inout Configuration) -> Void = { _ in }
    ) -> Central {
        var security = SecurityConfiguration(bonds: bonds)
        configure(&security)
        var configuration = Configuration()
        configuration.security = security
        configuration.addressHash = { $0.hash }
        configuration.writeSignature = { $0.code }
        change(&configuration)
        return Central(configuration, radio: radio)
    }

    /// Pairs, and disconnects.
    @discardableResult
    func pair(_ options: PairingOptions = PairingOptions()) async throws -> Bond {
        let peripheral = try await central.connect(id)
        let bond = try await peripheral.pair(options)
        await peripheral.disconnect()
        return bond
    }
}

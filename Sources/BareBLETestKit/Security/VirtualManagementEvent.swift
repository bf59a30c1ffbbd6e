package import BLECore

/// An event of the kernel's management interface, to be sent; the library only receives them.
///
/// Spec: Bluetooth Management API, Events; the layouts are those of the Linux kernel's `mgmt.h`.
package enum VirtualManagementEvent: Hashable, Sendable {
    case commandComplete(ManagementCommandCode, ManagementStatus, [UInt8])
    case commandStatus(ManagementCommandCode, ManagementStatus)
    case indexAdded
    case indexRemoved
    case newSettings(ManagementSettings)
    case newLongTermKey(isForStorage: Bool, ManagementLongTermKey)
    case deviceConnected(ManagementPeer)
    case deviceDisconnected(ManagementPeer, ManagementDeviceDisconnected.Reason)
    /// The number is meaningless for Just Works.
    case userConfirmationRequest(ManagementPeer, isJustWorks: Bool, number: UInt32)
    case userPasskeyRequest(ManagementPeer)
    case authenticationFailed(ManagementPeer, ManagementStatus)
    case deviceUnpaired(ManagementPeer)
    case passkeyNotify(ManagementPeer, UInt32)
    case newIdentityResolvingKey(
        isForStorage: Bool, privateAddress: BluetoothAddress, ManagementIdentityResolvingKey)
    /// The kind has bit 0 for the peer's key, and bit 1 for an authenticated one.
    case newSignatureKey(isForStorage: Bool, ManagementPeer, kind: UInt8, Secret128)
    case advertisingAdded(UInt8)
    case advertisingRemoved(UInt8)

    /// Returns the packet for the adapter with this index.
    package func packet(adapter: UInt16?) -> [UInt8] {
        ManagementPacket(code: code, adapter: adapter, parameters: parameters).bytes
    }

    private var code: UInt16 {
        switch self {
        case .commandComplete: 0x0001
        case .commandStatus: 0x0002
        case .indexAdded: 0x0004
        case .indexRemoved: 0x0005
        case .newSettings: 0x0006
        case .newLongTermKey: 0x000A
        case .deviceConnected: 0x000B
        case .deviceDisconnected: 0x000C
        case .userConfirmationRequest: 0x000F
        case .userPasskeyRequest: 0x0010
        case .authenticationFailed: 0x0011
        case .deviceUnpaired: 0x0016
        case .passkeyNotify: 0x0017
        case .newIdentityResolvingKey: 0x0018
        case .newSignatureKey: 0x0019
        case .advertisingAdded: 0x0023
        case .advertisingRemoved: 0x0024
        }
    }

    private var parameters: [UInt8] {
        var writer = ByteWriter()
        switch self {
        case .commandComplete(let command, let status, let returned):
            writer.u16(command.rawValue)
            writer.u8(status.rawValue)
            writer.array(returned)
        case .commandStatus(let command, let status):
            writer.u16(command.rawValue)
            writer.u8(status.rawValue)
        case .indexAdded, .indexRemoved: break
        case .newSettings(let settings): writer.u32(settings.rawValue)
        case .newLongTermKey(let isForStorage, let key):
            writer.u8(isForStorage ? 1 : 0)
            writer.managementPeer(key.peer)
            writer.u8(key.kind.rawValue)
            writer.u8(key.isCentral ? 1 : 0)
            writer.u8(key.size)
            writer.u16(key.ediv)
            writer.u64(key.rand)
            writer.secret(key.key)
        case .deviceConnected(let peer):
            writer.managementPeer(peer)
            // No flags, no advertising data.
            writer.u32(0)
            writer.u16(0)
        case .deviceDisconnected(let peer, let reason):
            writer.managementPeer(peer)
            writer.u8(reason.rawValue)
        case .userConfirmationRequest(let peer, let isJustWorks, let number):
            writer.managementPeer(peer)
            writer.u8(isJustWorks ? 1 : 0)
            writer.u32(number)
        case .userPasskeyRequest(let peer), .deviceUnpaired(let peer): writer.managementPeer(peer)
        case .authenticationFailed(let peer, let status):
            writer.managementPeer(peer)
            writer.u8(status.rawValue)
        case .passkeyNotify(let peer, let passkey):
            writer.managementPeer(peer)
            writer.u32(passkey)
            writer.u8(0)
        case .newIdentityResolvingKey(let isForStorage, let privateAddress, let key):
            writer.u8(isForStorage ? 1 : 0)
            writer.u48(privateAddress.rawValue)
            writer.managementPeer(key.peer)
            writer.secret(key.key)
        case .newSignatureKey(let isForStorage, let peer, let kind, let key):
            writer.u8(isForStorage ? 1 : 0)
            writer.managementPeer(peer)
            writer.u8(kind)
            writer.secret(key)
        case .advertisingAdded(let number), .advertisingRemoved(let number): writer.u8(number)
        }
        return writer.bytes
    }
}

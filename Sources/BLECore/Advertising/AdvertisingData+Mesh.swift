// Mesh, transport discovery, positioning and shelf labels: formats that other specifications own. The outer fields are
// read here, what is inside stays bytes.

extension AdvertisingData {
    /// A step of mesh provisioning over advertisements.
    public var meshProvisioning: MeshProvisioning? {
        first(.pbADV) { value in
            guard let link = value.u32(), let transaction = value.u8() else { return nil }
            return MeshProvisioning(linkID: link.byteSwapped, transaction: transaction, pdu: value.rest())
        }
    }

    /// A network PDU of a mesh, 14 to 29 bytes and obfuscated.
    public var meshMessage: [UInt8]? {
        first(.meshMessage) { 14...29 ~= $0.remaining ? $0.rest() : nil }
    }

    /// A beacon of a mesh.
    public var meshBeacon: MeshBeacon? {
        first(.meshBeacon) { value in
            guard let kind = value.u8() else { return nil }
            return MeshBeacon(kind: MeshBeacon.Kind(rawValue: kind), data: value.rest())
        }
    }

    /// Services on other transports, in payload order.
    public var transportDiscovery: [TransportBlock] {
        var result: [TransportBlock] = []
        forEach(.transportDiscoveryData) { value in
            while let organization = value.u8(), let flags = value.u8(), let length = value.u8(),
                let data = value.array(Int(length))
            {
                result.append(TransportBlock(organization: organization, flags: flags, data: data))
            }
        }
        return result
    }

    /// Where the device stands, as the Indoor Positioning Service encodes it: a flags octet and the fields it announces.
    public var indoorPositioning: [UInt8]? {
        first(.indoorPositioning) { $0.isAtEnd ? nil : $0.rest() }
    }

    /// The abilities of 3D glasses or a display.
    public var threeDInformation: ThreeDInformation? {
        first(.threeDInformationData) { value in
            guard value.remaining == 2, let flags = value.u8(), let threshold = value.u8() else { return nil }
            return ThreeDInformation(flags: flags, pathLossThreshold: threshold)
        }
    }

    /// The payload for electronic shelf labels; usually inside encrypted data.
    public var electronicShelfLabel: [UInt8]? { value(of: .electronicShelfLabel) }
}

/// A step of mesh provisioning over advertisements.
///
///     link 4, big-endian | transaction 1 | generic provisioning PDU
///
/// Spec: PB-ADV, Mesh Protocol, 5.2.1.
public struct MeshProvisioning: Hashable, Sendable {
    /// The provisioning link.
    public let linkID: UInt32
    /// The transaction on the link.
    public let transaction: UInt8
    /// The generic provisioning PDU.
    public let pdu: [UInt8]
}

/// A beacon of a mesh.
///
/// Spec: Mesh Protocol, 3.10.
public struct MeshBeacon: Hashable, Sendable {
    /// What a mesh beacon announces.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        /// The number on air.
        public let rawValue: UInt8

        /// The kind with this number; unknown ones are kept.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// A device that waits for provisioning.
        public static let unprovisionedDevice = Kind(rawValue: 0)
        /// A network, authenticated.
        public static let secureNetwork = Kind(rawValue: 1)
        /// A network, authenticated and private.
        public static let `private` = Kind(rawValue: 2)
    }

    /// What it announces.
    public let kind: Kind
    /// The beacon's fields.
    public let data: [UInt8]
}

/// A service on another transport.
///
/// Spec: Transport Discovery Service, 2.
public struct TransportBlock: Hashable, Sendable {
    /// Who defines `data`: 1 is the Bluetooth SIG.
    public let organization: UInt8
    /// Role, state and completeness.
    public let flags: UInt8
    /// The transport data.
    public let data: [UInt8]
}

/// The abilities of 3D glasses or a display.
///
/// Spec: 3D Synchronization Profile, 4.
public struct ThreeDInformation: Hashable, Sendable {
    /// The abilities.
    public let flags: UInt8
    /// The path loss in dB beyond which a display counts as out of range.
    public let pathLossThreshold: UInt8
}

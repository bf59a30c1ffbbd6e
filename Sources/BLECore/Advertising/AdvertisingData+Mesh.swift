// Mesh, transport discovery, positioning and shelf labels: formats defined by other specifications. Only the outer
// fields are decoded; the contents stay bytes.

extension AdvertisingData {
    /// The mesh provisioning PDU, if the payload carries one over the advertising bearer.
    public var meshProvisioning: MeshProvisioning? {
        first(.pbADV) { value in
            guard let link = value.u32(), let transaction = value.u8() else { return nil }
            return MeshProvisioning(linkID: link.byteSwapped, transaction: transaction, pdu: value.rest())
        }
    }

    /// An obfuscated mesh network PDU, 14 to 29 bytes.
    public var meshMessage: [UInt8]? {
        first(.meshMessage) { 14...29 ~= $0.remaining ? $0.rest() : nil }
    }

    /// The mesh beacon.
    public var meshBeacon: MeshBeacon? {
        first(.meshBeacon) { value in
            guard let kind = value.u8() else { return nil }
            return MeshBeacon(kind: MeshBeacon.Kind(rawValue: kind), data: value.rest())
        }
    }

    /// The services on other transports, in payload order.
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

    /// The device's position as the Indoor Positioning Service encodes it: a flags octet and the fields it announces.
    public var indoorPositioning: [UInt8]? {
        first(.indoorPositioning) { $0.isAtEnd ? nil : $0.rest() }
    }

    /// The capabilities of 3D glasses or of a display.
    public var threeDInformation: ThreeDInformation? {
        first(.threeDInformationData) { value in
            guard value.remaining == 2, let flags = value.u8(), let threshold = value.u8() else { return nil }
            return ThreeDInformation(flags: flags, pathLossThreshold: threshold)
        }
    }

    /// The electronic shelf label payload; usually found inside encrypted data.
    public var electronicShelfLabel: [UInt8]? { value(of: .electronicShelfLabel) }

    /// A mesh provisioning PDU on the advertising bearer.
    ///
    ///     link 4, big-endian | transaction 1 | generic provisioning PDU
    ///
    /// Spec: PB-ADV, Mesh Protocol, 5.2.1.
    public struct MeshProvisioning: Hashable, Sendable {
        /// The identifier of the provisioning link.
        public let linkID: UInt32
        /// The transaction number on the link.
        public let transaction: UInt8
        /// The generic provisioning PDU.
        public let pdu: [UInt8]
    }

    /// A mesh beacon.
    ///
    /// Spec: Mesh Protocol, 3.10.
    public struct MeshBeacon: Hashable, Sendable {
        /// The type of a mesh beacon.
        public struct Kind: RawRepresentable, Hashable, Sendable {
            /// The raw value.
            public let rawValue: UInt8

            /// Creates a type from its raw value. Unknown values are preserved.
            public init(rawValue: UInt8) {
                self.rawValue = rawValue
            }

            /// An unprovisioned device.
            public static let unprovisionedDevice = Kind(rawValue: 0)
            /// An authenticated network beacon.
            public static let secureNetwork = Kind(rawValue: 1)
            /// An authenticated network beacon with private contents.
            public static let `private` = Kind(rawValue: 2)
        }

        /// The beacon's type.
        public let kind: Kind
        /// The beacon's fields.
        public let data: [UInt8]
    }

    /// A service on another transport.
    ///
    /// Spec: Transport Discovery Service, 2.
    public struct TransportBlock: Hashable, Sendable {
        /// The organization that defines `data`: 1 is the Bluetooth SIG.
        public let organization: UInt8
        /// The role, state and completeness bits.
        public let flags: UInt8
        /// The transport data.
        public let data: [UInt8]
    }

    /// The capabilities of 3D glasses or of a display.
    ///
    /// Spec: 3D Synchronization Profile, 4.
    public struct ThreeDInformation: Hashable, Sendable {
        /// The capability flags.
        public let flags: UInt8
        /// The path loss, in dB, above which the display counts as out of range.
        public let pathLossThreshold: UInt8
    }
}

// MARK: - Former names

/// The former name of `AdvertisingData.MeshProvisioning`.
@available(*, deprecated, renamed: "AdvertisingData.MeshProvisioning")
public typealias MeshProvisioning = AdvertisingData.MeshProvisioning
/// The former name of `AdvertisingData.MeshBeacon`.
@available(*, deprecated, renamed: "AdvertisingData.MeshBeacon")
public typealias MeshBeacon = AdvertisingData.MeshBeacon
/// The former name of `AdvertisingData.TransportBlock`.
@available(*, deprecated, renamed: "AdvertisingData.TransportBlock")
public typealias TransportBlock = AdvertisingData.TransportBlock
/// The former name of `AdvertisingData.ThreeDInformation`.
@available(*, deprecated, renamed: "AdvertisingData.ThreeDInformation")
public typealias ThreeDInformation = AdvertisingData.ThreeDInformation

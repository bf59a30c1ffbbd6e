/// What a device says about its discoverability and its transports.
///
/// Spec: Core Specification Supplement, Part A, 1.3.
public struct AdvertisingFlags: OptionSet, Hashable, Sendable {
    /// The first octet of the value.
    public let rawValue: UInt8

    /// The flags with these bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Discoverable for a short time, usually because somebody pressed a button.
    public static let limitedDiscoverable = AdvertisingFlags(rawValue: 0x01)
    /// Discoverable at any time.
    public static let generalDiscoverable = AdvertisingFlags(rawValue: 0x02)
    /// The device speaks LE only.
    public static let classicNotSupported = AdvertisingFlags(rawValue: 0x04)
    /// The controller speaks LE and BR/EDR at the same time.
    public static let simultaneousController = AdvertisingFlags(rawValue: 0x08)
    /// The host speaks LE and BR/EDR at the same time; used by earlier versions only.
    public static let simultaneousHost = AdvertisingFlags(rawValue: 0x10)

    /// The set flags in words, lowest bit first.
    public var sentence: String {
        var words = ""
        func add(_ flag: AdvertisingFlags, _ text: String) {
            guard contains(flag) else { return }
            words += words.isEmpty ? text : ", " + text
        }
        add(.limitedDiscoverable, "limited discoverable")
        add(.generalDiscoverable, "general discoverable")
        add(.classicNotSupported, "BR/EDR not supported")
        add(.simultaneousController, "LE and BR/EDR at once (controller)")
        add(.simultaneousHost, "LE and BR/EDR at once (host)")
        return words
    }
}

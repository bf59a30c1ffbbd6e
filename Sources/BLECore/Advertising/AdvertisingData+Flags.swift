extension AdvertisingData {
    /// A device's discoverability and transport flags.
    ///
    /// Spec: Core Specification Supplement, Part A, 1.3.
    public struct Flags: OptionSet, Hashable, Sendable {
        /// The first octet of the value.
        public let rawValue: UInt8

        /// Creates flags from raw bits.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// Discoverable for a limited time, usually after a button press.
        public static let limitedDiscoverable = Flags(rawValue: 0x01)
        /// Discoverable at any time.
        public static let generalDiscoverable = Flags(rawValue: 0x02)
        /// The device supports LE only.
        public static let classicNotSupported = Flags(rawValue: 0x04)
        /// The controller supports LE and BR/EDR simultaneously.
        public static let simultaneousController = Flags(rawValue: 0x08)
        /// The host supports LE and BR/EDR simultaneously; only used by earlier versions of the specification.
        public static let simultaneousHost = Flags(rawValue: 0x10)

        /// The names of the set flags, lowest bit first, separated by commas.
        public var sentence: String {
            var words = ""
            func add(_ flag: Flags, _ text: String) {
                guard contains(flag) else { return }
                words += words.isEmpty ? text : ", " + text
            }
            add(.limitedDiscoverable, "limited discoverable")
            add(.generalDiscoverable, "general discoverable")
            add(.classicNotSupported, "BR/EDR not supported")
            add(.simultaneousController, "simultaneous LE + BR/EDR (controller)")
            add(.simultaneousHost, "simultaneous LE + BR/EDR (host)")
            return words
        }
    }
}

/// The former name of `AdvertisingData.Flags`.
@available(*, deprecated, renamed: "AdvertisingData.Flags")
public typealias AdvertisingFlags = AdvertisingData.Flags

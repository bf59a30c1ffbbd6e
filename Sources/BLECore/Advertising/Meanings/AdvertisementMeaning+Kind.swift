extension AdvertisementMeaning {
    /// A format of makers' or services' data. More come with later versions.
    public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name, which is stable: scripts may compare it.
        public let rawValue: String

        /// A format by its name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The name.
        public var description: String { rawValue }

        /// Apple's proximity beacon.
        public static var iBeacon: Self { Self(rawValue: "ibeacon") }
        /// The open proximity beacon of Radius Networks.
        public static var altBeacon: Self { Self(rawValue: "altbeacon") }
        /// A frame of Google's open beacon format.
        public static var eddystone: Self { Self(rawValue: "eddystone") }
        /// A phone that takes part in exposure notification.
        public static var exposureNotification: Self { Self(rawValue: "exposure-notification") }
        /// What Apple's devices tell each other.
        public static var appleContinuity: Self { Self(rawValue: "apple-continuity") }
        /// A thing that Apple's devices help to find.
        public static var findMy: Self { Self(rawValue: "find-my") }
        /// A sensor of Ruuvi.
        public static var ruuviTag: Self { Self(rawValue: "ruuvitag") }
    }
}

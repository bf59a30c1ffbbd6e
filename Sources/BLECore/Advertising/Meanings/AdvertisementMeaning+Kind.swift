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
        /// A thing that Google's network helps to find.
        public static var findHub: Self { Self(rawValue: "find-hub") }
        /// A tracker of Tile.
        public static var tile: Self { Self(rawValue: "tile") }
        /// A tracker of Samsung.
        public static var smartTag: Self { Self(rawValue: "smarttag") }
        /// A device of the Connected Devices Platform, most often a computer with Windows.
        public static var microsoftCDP: Self { Self(rawValue: "microsoft-cdp") }
        /// A device that Windows offers to pair with.
        public static var swiftPair: Self { Self(rawValue: "swift-pair") }
        /// A device that Android offers to pair with.
        public static var fastPair: Self { Self(rawValue: "fast-pair") }
        /// A sensor of Ruuvi.
        public static var ruuviTag: Self { Self(rawValue: "ruuvitag") }
        /// A sensor that uses the open format BTHome.
        public static var btHome: Self { Self(rawValue: "bthome") }
        /// A device of Xiaomi's ecosystem.
        public static var miBeacon: Self { Self(rawValue: "mibeacon") }
        /// A thermometer with one of the free firmwares ATC and pvvx.
        public static var atc: Self { Self(rawValue: "atc") }
        /// A thermometer of Govee.
        public static var govee: Self { Self(rawValue: "govee") }
        /// A device of SwitchBot.
        public static var switchBot: Self { Self(rawValue: "switchbot") }
    }
}

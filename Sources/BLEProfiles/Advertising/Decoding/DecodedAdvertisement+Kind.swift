internal import BLECore

extension DecodedAdvertisement {
    /// A format of manufacturer or service data. Later versions may add more.
    public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name. It is stable, so scripts may compare it.
        public let rawValue: String

        /// Creates a format from its name.
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
        /// Continuity messages between Apple devices.
        public static var appleContinuity: Self { Self(rawValue: "apple-continuity") }
        /// An item in Apple's Find My network.
        public static var findMy: Self { Self(rawValue: "find-my") }
        /// An item in Google's Find Hub network.
        public static var findHub: Self { Self(rawValue: "find-hub") }
        /// A Tile tracker.
        public static var tile: Self { Self(rawValue: "tile") }
        /// A Samsung SmartTag.
        public static var smartTag: Self { Self(rawValue: "smarttag") }
        /// A device of Microsoft's Connected Devices Platform, usually a Windows computer.
        public static var microsoftCDP: Self { Self(rawValue: "microsoft-cdp") }
        /// A device that supports Microsoft Swift Pair.
        public static var swiftPair: Self { Self(rawValue: "swift-pair") }
        /// A device that supports Google Fast Pair.
        public static var fastPair: Self { Self(rawValue: "fast-pair") }
        /// A Ruuvi sensor.
        public static var ruuviTag: Self { Self(rawValue: "ruuvitag") }
        /// A sensor that uses the open BTHome format.
        public static var btHome: Self { Self(rawValue: "bthome") }
        /// A device of the Xiaomi ecosystem.
        public static var miBeacon: Self { Self(rawValue: "mibeacon") }
        /// A thermometer with the ATC or pvvx custom firmware.
        public static var atc: Self { Self(rawValue: "atc") }
        /// A Govee thermometer.
        public static var govee: Self { Self(rawValue: "govee") }
        /// An Airthings Wave.
        public static var airthings: Self { Self(rawValue: "airthings") }
        /// An Aranet sensor.
        public static var aranet: Self { Self(rawValue: "aranet") }
        /// An Inkbird thermometer.
        public static var inkbird: Self { Self(rawValue: "inkbird") }
        /// A Matter device that waits to be commissioned.
        public static var matter: Self { Self(rawValue: "matter") }
        /// A Mopeka sensor of the level in a tank.
        public static var mopeka: Self { Self(rawValue: "mopeka") }
        /// An Oral-B toothbrush.
        public static var oralB: Self { Self(rawValue: "oral-b") }
        /// A Qingping sensor.
        public static var qingping: Self { Self(rawValue: "qingping") }
        /// A SensorPush sensor.
        public static var sensorPush: Self { Self(rawValue: "sensorpush") }
        /// A ThermoPro thermometer.
        public static var thermoPro: Self { Self(rawValue: "thermopro") }
        /// A scale of Xiaomi.
        public static var xiaomiScale: Self { Self(rawValue: "xiaomi-scale") }
        /// A device of Victron Energy with instant readout.
        public static var victron: Self { Self(rawValue: "victron") }
        /// A SwitchBot device.
        public static var switchBot: Self { Self(rawValue: "switchbot") }
    }
}

public import BLECore

/// The current phase of a workout.
///
///     flags 1 | status 1 | bit 0: text, the rest      bit 1: the text is longer than this value
///
/// Spec: Training Status (0x2AD3), Fitness Machine Service 1.0, 4.10.
public struct TrainingStatus: GATTReadable, Hashable, Sendable {
    /// A phase of a workout.
    public struct Phase: RawRepresentable, Hashable, Sendable {
        /// The raw value.
        public let rawValue: UInt8

        /// Creates a phase from its raw value. Unknown values are preserved.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// The name in lowercase, or `nil` if the value is not assigned.
        public var name: String? { assignedName }

        /// Something else.
        public static let other = Self(rawValue: 0)
        /// Idle.
        public static let idle = Self(rawValue: 1)
        /// Warming up.
        public static let warmingUp = Self(rawValue: 2)
        /// Low intensity interval.
        public static let lowIntensityInterval = Self(rawValue: 3)
        /// High intensity interval.
        public static let highIntensityInterval = Self(rawValue: 4)
        /// Recovery interval.
        public static let recoveryInterval = Self(rawValue: 5)
        /// Isometric exercise.
        public static let isometric = Self(rawValue: 6)
        /// Heart rate control.
        public static let heartRateControl = Self(rawValue: 7)
        /// Fitness test.
        public static let fitnessTest = Self(rawValue: 8)
        /// Below the control range: the user must go faster.
        public static let speedTooLow = Self(rawValue: 9)
        /// Above the control range: the user must go slower.
        public static let speedTooHigh = Self(rawValue: 10)
        /// Cooling down.
        public static let coolDown = Self(rawValue: 11)
        /// Power control.
        public static let wattControl = Self(rawValue: 12)
        /// Manual mode (quick start).
        public static let manualMode = Self(rawValue: 13)
        /// Before the training.
        public static let preWorkout = Self(rawValue: 14)
        /// After the training.
        public static let postWorkout = Self(rawValue: 15)
    }

    /// The phase.
    public let phase: Phase
    /// The machine's text, without trailing zero bytes. Invalid UTF-8 is replaced.
    public let text: String?
    /// A Boolean value that indicates whether the text is truncated; reading the characteristic returns all of it.
    public let isTextCut: Bool
    /// The specification's name.
    public static var formatName: String { "Training Status" }

    /// Reads one status. The text extends to the end of the value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        let flags = try FieldFlags(UInt8.self, known: 2, reading: &reader)
        phase = Phase(rawValue: try reader.read())
        text = flags[0] ? Self.text(reader.rest()) : nil
        isTextCut = flags[1]
        reader.skipReserved(flags)
    }

    private static func text(_ bytes: [UInt8]) -> String {
        var bytes = bytes
        while bytes.last == 0 { bytes.removeLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension TrainingStatus.Phase: NamedCode {
    package static var names: [String] {
        [
            "other", "idle", "warming up", "low intensity interval", "high intensity interval", "recovery interval",
            "isometric", "heart rate control", "fitness test", "speed too low", "speed too high", "cool down",
            "watt control", "manual mode", "pre-workout", "post-workout",
        ]
    }
}

extension TrainingStatus: DescribedValue {
    package var fields: [ValueField] {
        var list = FieldList()
        list.add("training", phase)
        list.add("text", quoted: text)
        if isTextCut { list.add("text cut", flag: true) }
        return list.fields
    }
}

extension CharacteristicKey where Value == TrainingStatus {
    /// Training Status, 0x2AD3: notified when it changes.
    public static var trainingStatus: Self { Self(0x2AD3) }
}

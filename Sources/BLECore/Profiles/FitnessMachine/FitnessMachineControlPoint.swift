/// What a fitness machine can be told.
///
///     op code 1 | parameter, as far as there is one
///
/// Control must be asked for first, once a connection; until then every other request is answered with
/// ``ControlPointResult/controlNotPermitted``.
///
/// Spec: Fitness Machine Control Point (0x2AD9), Fitness Machine Service 1.0, 4.16.
public enum FitnessMachineControlPointRequest: GATTWritable, Hashable, Sendable {
    /// Asks for control.
    case requestControl
    /// Resets everything, and gives control back.
    case reset
    /// Sets a target.
    case setTarget(FitnessMachineTarget)
    /// Starts, or goes on.
    case startOrResume
    /// Stops.
    case stop
    /// Pauses.
    case pause
    /// Starts the calibration by letting the wheel run out.
    case startSpinDown
    /// Declines that calibration when the machine has asked for it.
    case ignoreSpinDown

    /// Appends the op code and its parameter.
    public func write(to writer: inout ByteWriter) {
        switch self {
        case .requestControl: writer.u8(0x00)
        case .reset: writer.u8(0x01)
        case .startOrResume: writer.u8(0x07)
        case .stop: writer.array([0x08, 1])
        case .pause: writer.array([0x08, 2])
        case .startSpinDown: writer.array([0x13, 1])
        case .ignoreSpinDown: writer.array([0x13, 2])
        case .setTarget(let target):
            writer.u8(Self.opCode(of: target.kind))
            target.write(to: &writer)
        }
    }

    private static func opCode(of kind: FitnessMachineTarget.Kind) -> UInt8 {
        switch kind {
        case .speed, .inclination, .resistanceLevel, .power, .heartRate: kind.rawValue &+ 0x02
        case .cadence: 0x14
        case .energy, .steps, .strides, .distance, .trainingTime, .twoZones, .threeZones, .fiveZones, .simulation,
            .wheelCircumference:
            kind.rawValue &+ 0x04
        }
    }
}

/// What a fitness machine answers.
///
///     0x80 | request 1 | result 1 | parameter, the rest
///
/// Spec: Fitness Machine Control Point (0x2AD9), Fitness Machine Service 1.0, 4.16.2.22.
public struct FitnessMachineControlPointResponse: ControlPointAnswer {
    /// The speeds between which the wheel must run out, in kilometres per hour, to 0.01.
    public struct SpinDownSpeeds: GATTReadable, Hashable, Sendable {
        /// Where the measurement ends.
        public let low: Double
        /// Where the measurement begins: somebody must get faster than this.
        public let high: Double

        /// Reads 4 bytes.
        ///
        /// - Throws: `MalformedPacket` when there are fewer.
        public init(reading reader: inout ByteReader) throws(MalformedPacket) {
            low = try reader.read(UInt16.self, per: 100)
            high = try reader.read(UInt16.self, per: 100)
        }
    }

    /// The op code of the request.
    public let request: UInt8
    /// How it ended.
    public let result: ControlPointResult
    /// What was asked for, in bytes.
    public let parameter: [UInt8]
    /// The specification's name.
    public static var formatName: String { "Fitness Machine Control Point" }
    /// 0x80.
    public static var responseCode: UInt8 { 0x80 }

    /// An answer with these parts.
    public init(request: UInt8, result: ControlPointResult, parameter: [UInt8] = []) {
        self.request = request
        self.result = result
        self.parameter = parameter
    }

    /// The speeds of a calibration that was started.
    public var spinDownSpeeds: SpinDownSpeeds? { parameter(of: 0x13) }
}

extension FitnessMachineControlPointResponse: DescribedValue {
    package var fields: [ValueField] { answerFields().fields }
}

extension CharacteristicKey where Value == FitnessMachineControlPointRequest {
    /// Fitness Machine Control Point, 0x2AD9, to write requests to.
    public static var fitnessMachineControlPointRequest: Self { Self(0x2AD9) }
}

extension CharacteristicKey where Value == FitnessMachineControlPointResponse {
    /// Fitness Machine Control Point, 0x2AD9, to subscribe to before a request is written.
    public static var fitnessMachineControlPointResponse: Self { Self(0x2AD9) }
}

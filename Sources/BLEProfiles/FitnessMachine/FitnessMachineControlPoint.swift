public import BLECore

/// A request to a fitness machine.
///
///     opcode 1 | parameter, if any
///
/// Control must be requested first, once per connection. Until then, the machine responds to every other request with
/// ``ControlPointResult/controlNotPermitted``.
///
/// Spec: Fitness Machine Control Point (0x2AD9), Fitness Machine Service 1.0, 4.16.
public enum FitnessMachineControlPointRequest: GATTWritable, Hashable, Sendable {
    /// Requests control.
    case requestControl
    /// Resets all settings and gives up control.
    case reset
    /// Sets a target.
    case setTarget(FitnessMachineTarget)
    /// Starts or resumes the workout.
    case startOrResume
    /// Stops the workout.
    case stop
    /// Pauses the workout.
    case pause
    /// Starts the spin-down calibration.
    case startSpinDown
    /// Declines a spin-down calibration that the machine has requested.
    case ignoreSpinDown

    /// Appends the opcode and its parameter.
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

/// A response of a fitness machine.
///
///     0x80 | request 1 | result 1 | parameter, the rest
///
/// Spec: Fitness Machine Control Point (0x2AD9), Fitness Machine Service 1.0, 4.16.2.22.
public struct FitnessMachineControlPointResponse: ControlPointResponse {
    /// The speeds between which the spin-down is measured, in km/h, with a resolution of 0.01.
    public struct SpinDownSpeeds: GATTReadable, Hashable, Sendable {
        /// The speed at which the measurement ends.
        public let low: Double
        /// The speed at which the measurement begins; the user must exceed it.
        public let high: Double

        /// Reads 4 bytes.
        ///
        /// - Throws: `MalformedPacket` if there are fewer.
        public init(reading reader: inout ByteReader) throws(MalformedPacket) {
            low = try reader.read(UInt16.self, per: 100)
            high = try reader.read(UInt16.self, per: 100)
        }
    }

    /// The opcode of the request.
    public let request: UInt8
    /// The result.
    public let result: ControlPointResult
    /// The response parameter as bytes.
    public let parameter: [UInt8]
    /// The specification's name.
    public static var formatName: String { "Fitness Machine Control Point" }
    /// 0x80.
    public static var responseCode: UInt8 { 0x80 }

    /// Creates a response.
    public init(request: UInt8, result: ControlPointResult, parameter: [UInt8] = []) {
        self.request = request
        self.result = result
        self.parameter = parameter
    }

    /// The speeds of a spin-down calibration that was started.
    public var spinDownSpeeds: SpinDownSpeeds? { parameter(of: 0x13) }
}

extension FitnessMachineControlPointResponse: DescribedValue {
    package var fields: [ValueField] { responseFields().fields }
}

extension CharacteristicKey where Value == FitnessMachineControlPointRequest {
    /// Fitness Machine Control Point, 0x2AD9, to write requests to.
    public static var fitnessMachineControlPointRequest: Self { Self(0x2AD9) }
}

extension CharacteristicKey where Value == FitnessMachineControlPointResponse {
    /// Fitness Machine Control Point, 0x2AD9, to subscribe to before a request is written.
    public static var fitnessMachineControlPointResponse: Self { Self(0x2AD9) }
}

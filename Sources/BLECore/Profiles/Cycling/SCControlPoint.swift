/// What can be asked of a speed and cadence sensor, on a bicycle or on a runner.
///
///     1 | count 4      2      3 | location 1      4
///
/// Spec: SC Control Point (0x2A55), Cycling Speed and Cadence Service 1.0, 3.4; Running Speed and Cadence Service 1.0, 3.4.
public enum SCControlPointRequest: GATTWritable, Hashable, Sendable {
    /// Sets the turns of the wheel, or the distance of a runner in 1/10 m.
    case setCumulativeValue(UInt32)
    /// Begins to calibrate; runners' sensors only.
    case startSensorCalibration
    /// Tells the sensor where it sits.
    case updateSensorLocation(SensorLocation)
    /// Asks where the sensor may sit: ``SCControlPointResponse/supportedLocations``.
    case requestSupportedSensorLocations

    /// Appends the op code and its parameter.
    public func write(to writer: inout ByteWriter) {
        switch self {
        case .setCumulativeValue(let value):
            writer.u8(1)
            writer.u32(value)
        case .startSensorCalibration: writer.u8(2)
        case .updateSensorLocation(let location):
            writer.u8(3)
            writer.write(location)
        case .requestSupportedSensorLocations: writer.u8(4)
        }
    }
}

/// What a speed and cadence sensor answers.
///
///     0x10 | request 1 | result 1 | parameter, the rest
///
/// Spec: SC Control Point (0x2A55), Cycling Speed and Cadence Service 1.0, 3.4.
public struct SCControlPointResponse: ControlPointAnswer {
    /// The op code of the request.
    public let request: UInt8
    /// How it ended.
    public let result: ControlPointResult
    /// What was asked for, in bytes.
    public let parameter: [UInt8]
    /// The specification's name.
    public static var formatName: String { "SC Control Point" }
    /// 0x10.
    public static var responseCode: UInt8 { 0x10 }

    /// An answer with these parts.
    public init(request: UInt8, result: ControlPointResult, parameter: [UInt8] = []) {
        self.request = request
        self.result = result
        self.parameter = parameter
    }

    /// Where the sensor may sit, if that was asked.
    public var supportedLocations: [SensorLocation]? { locations(of: 4) }
}

extension SCControlPointResponse: DescribedValue {
    package var fields: [ValueField] { answerFields().fields }
}

extension CharacteristicKey where Value == SCControlPointRequest {
    /// SC Control Point, 0x2A55, to write requests to.
    public static var scControlPointRequest: Self { Self(0x2A55) }
}

extension CharacteristicKey where Value == SCControlPointResponse {
    /// SC Control Point, 0x2A55, to subscribe to before a request is written.
    public static var scControlPointResponse: Self { Self(0x2A55) }
}

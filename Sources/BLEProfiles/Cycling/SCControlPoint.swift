public import BLECore

/// A request to a speed and cadence sensor, for cycling or running.
///
///     1 | count 4      2      3 | location 1      4
///
/// Spec: SC Control Point (0x2A55), Cycling Speed and Cadence Service 1.0, 3.4; Running Speed and Cadence Service 1.0,
/// 3.4.
public enum SCControlPointRequest: GATTWritable, Hashable, Sendable {
    /// Sets the cumulative wheel revolutions or, for running, the total distance in units of 0.1 m.
    case setCumulativeValue(UInt32)
    /// Starts the calibration; running sensors only.
    case startSensorCalibration
    /// Sets the sensor location.
    case updateSensorLocation(SensorLocation)
    /// Requests the supported locations: ``SCControlPointResponse/supportedLocations``.
    case requestSupportedSensorLocations

    /// Appends the opcode and its parameter.
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

/// A response of a speed and cadence sensor.
///
///     0x10 | request 1 | result 1 | parameter, the rest
///
/// Spec: SC Control Point (0x2A55), Cycling Speed and Cadence Service 1.0, 3.4.
public struct SCControlPointResponse: ControlPointResponse {
    /// The opcode of the request.
    public let request: UInt8
    /// The result.
    public let result: ControlPointResult
    /// The response parameter as bytes.
    public let parameter: [UInt8]
    /// The specification's name.
    public static var formatName: String { "SC Control Point" }
    /// 0x10.
    public static var responseCode: UInt8 { 0x10 }

    /// Creates a response.
    public init(request: UInt8, result: ControlPointResult, parameter: [UInt8] = []) {
        self.request = request
        self.result = result
        self.parameter = parameter
    }

    /// The supported sensor locations, if requested.
    public var supportedLocations: [SensorLocation]? { locations(of: 4) }
}

extension SCControlPointResponse: DescribedValue {
    package var fields: [ValueField] { responseFields().fields }
}

extension CharacteristicKey where Value == SCControlPointRequest {
    /// SC Control Point, 0x2A55, to write requests to.
    public static var scControlPointRequest: Self { Self(0x2A55) }
}

extension CharacteristicKey where Value == SCControlPointResponse {
    /// SC Control Point, 0x2A55, to subscribe to before a request is written.
    public static var scControlPointResponse: Self { Self(0x2A55) }
}

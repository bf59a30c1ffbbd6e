public import BLECore

/// A request to a cycling power meter.
///
///     opcode 1 | parameter, if any
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5.
public enum CyclingPowerControlPointRequest: GATTWritable, Hashable, Sendable {
    /// Sets the cumulative wheel revolutions.
    case setCumulativeValue(UInt32)
    /// Sets the sensor location.
    case updateSensorLocation(SensorLocation)
    /// Requests the supported sensor locations.
    case requestSupportedSensorLocations
    /// Sets the crank length in millimetres, with a resolution of 0.5.
    case setCrankLength(Double)
    /// Requests the crank length.
    case requestCrankLength
    /// Sets the chain length in millimetres.
    case setChainLength(UInt16)
    /// Requests the chain length.
    case requestChainLength
    /// Sets the chain weight in grams.
    case setChainWeight(UInt16)
    /// Requests the chain weight.
    case requestChainWeight
    /// Sets the span length in millimetres.
    case setSpanLength(UInt16)
    /// Requests the span length.
    case requestSpanLength
    /// Uses the present force or torque as zero. The pedals must be unloaded.
    case startOffsetCompensation
    /// Omits these fields from measurements from now on.
    case maskMeasurementContent(CyclingPowerMeasurementContent)
    /// Requests the sampling rate.
    case requestSamplingRate
    /// Requests the factory calibration date.
    case requestFactoryCalibrationDate
    /// Like ``startOffsetCompensation``, with manufacturer-specific data in the response.
    case startEnhancedOffsetCompensation

    /// Appends the opcode and its parameter.
    public func write(to writer: inout ByteWriter) {
        writer.u8(opCode)
        switch self {
        case .setCumulativeValue(let turns): writer.u32(turns)
        case .updateSensorLocation(let location): writer.write(location)
        case .setCrankLength(let millimetres): writer.u16(UInt16(counting: millimetres, per: 2))
        case .setChainLength(let value), .setChainWeight(let value), .setSpanLength(let value): writer.u16(value)
        case .maskMeasurementContent(let content): writer.u16(content.rawValue)
        case .requestSupportedSensorLocations, .requestCrankLength, .requestChainLength, .requestChainWeight,
            .requestSpanLength, .startOffsetCompensation, .requestSamplingRate, .requestFactoryCalibrationDate,
            .startEnhancedOffsetCompensation:
            break
        }
    }

    private var opCode: UInt8 {
        switch self {
        case .setCumulativeValue: 1
        case .updateSensorLocation: 2
        case .requestSupportedSensorLocations: 3
        case .setCrankLength: 4
        case .requestCrankLength: 5
        case .setChainLength: 6
        case .requestChainLength: 7
        case .setChainWeight: 8
        case .requestChainWeight: 9
        case .setSpanLength: 10
        case .requestSpanLength: 11
        case .startOffsetCompensation: 12
        case .maskMeasurementContent: 13
        case .requestSamplingRate: 14
        case .requestFactoryCalibrationDate: 15
        case .startEnhancedOffsetCompensation: 16
        }
    }
}

/// A response of a cycling power meter.
///
///     0x20 | request 1 | result 1 | parameter, the rest
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5.
public struct CyclingPowerControlPointResponse: ControlPointResponse {
    /// The opcode of the request.
    public let request: UInt8
    /// The result.
    public let result: ControlPointResult
    /// The response parameter as bytes.
    public let parameter: [UInt8]
    /// The specification's name.
    public static var formatName: String { "Cycling Power Control Point" }
    /// 0x20.
    public static var responseCode: UInt8 { 0x20 }

    /// Creates a response.
    public init(request: UInt8, result: ControlPointResult, parameter: [UInt8] = []) {
        self.request = request
        self.result = result
        self.parameter = parameter
    }

    /// The supported sensor locations, if requested.
    public var supportedLocations: [SensorLocation]? { locations(of: 3) }
    /// The crank length in millimetres, if requested.
    public var crankLength: Double? { parameter(of: 5, as: UInt16.self).map { Double($0) / 2 } }
    /// The chain length in millimetres, if requested.
    public var chainLength: UInt16? { parameter(of: 7) }
    /// The chain weight in grams, if requested.
    public var chainWeight: UInt16? { parameter(of: 9) }
    /// The span length in millimetres, if requested.
    public var spanLength: UInt16? { parameter(of: 11) }
    /// The raw offset used as zero, in newtons, or in 1/32 Nm for a torque-based meter.
    public var offset: Int16? { parameter(of: 12) }
    /// The sampling rate in Hz, if requested.
    public var samplingRate: UInt8? { parameter(of: 14) }
    /// The factory calibration date, if requested.
    public var factoryCalibrationDate: GATTDateTime? { parameter(of: 15) }
    /// The result of the enhanced offset compensation, if requested.
    public var enhancedOffset: EnhancedOffset? { parameter(of: 16) }
}

extension CyclingPowerControlPointResponse: DescribedValue {
    package var fields: [ValueField] { responseFields().fields }
}

extension CharacteristicKey where Value == CyclingPowerControlPointRequest {
    /// Cycling Power Control Point, 0x2A66, to write requests to.
    public static var cyclingPowerControlPointRequest: Self { Self(0x2A66) }
}

extension CharacteristicKey where Value == CyclingPowerControlPointResponse {
    /// Cycling Power Control Point, 0x2A66, to subscribe to before a request is written.
    public static var cyclingPowerControlPointResponse: Self { Self(0x2A66) }
}

/// The fields of a power measurement that can be omitted.
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5, Mask Cycling Power Measurement
/// Characteristic Content.
public struct CyclingPowerMeasurementContent: OptionSet, Hashable, Sendable {
    /// The raw bits.
    public let rawValue: UInt16

    /// Creates a set of fields from raw bits.
    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The pedal power balance.
    public static let pedalPowerBalance = Self(rawValue: 1 << 0)
    /// The accumulated torque.
    public static let accumulatedTorque = Self(rawValue: 1 << 1)
    /// The wheel revolutions.
    public static let wheelRevolutions = Self(rawValue: 1 << 2)
    /// The crank revolutions.
    public static let crankRevolutions = Self(rawValue: 1 << 3)
    /// The extreme forces or torques.
    public static let extremeMagnitudes = Self(rawValue: 1 << 4)
    /// The angles of the extremes.
    public static let extremeAngles = Self(rawValue: 1 << 5)
    /// The angle of the top dead spot.
    public static let topDeadSpotAngle = Self(rawValue: 1 << 6)
    /// The angle of the bottom dead spot.
    public static let bottomDeadSpotAngle = Self(rawValue: 1 << 7)
    /// The accumulated energy.
    public static let accumulatedEnergy = Self(rawValue: 1 << 8)
}

/// The result of an enhanced offset compensation.
///
///     force or torque 2 | company 2 | length 1 | manufacturer data
///
/// Bytes after the manufacturer data are skipped: some meters append a zero byte.
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5, Start Enhanced Offset Compensation.
public struct EnhancedOffset: GATTReadable, Hashable, Sendable {
    /// The raw offset used as zero, in newtons, or in 1/32 Nm for a torque-based meter.
    public let offset: Int16
    /// The manufacturer's company identifier.
    public let company: UInt16
    /// The manufacturer-specific data.
    public let manufacturerData: [UInt8]
    /// The specification's name for the procedure.
    public static var formatName: String { "Enhanced Offset Compensation" }

    /// Reads the parameter of the response.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        offset = try reader.read()
        company = try reader.read()
        let length: UInt8 = try reader.read()
        guard let data = reader.array(Int(length)) else { throw reader.tooShort }
        manufacturerData = data
        _ = reader.rest()
    }
}

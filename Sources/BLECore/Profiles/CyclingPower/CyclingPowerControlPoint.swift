/// What can be asked of a power meter.
///
///     op code 1 | parameter, as far as there is one
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5.
public enum CyclingPowerControlPointRequest: GATTWritable, Hashable, Sendable {
    /// Sets the turns of the wheel.
    case setCumulativeValue(UInt32)
    /// Tells the meter where it sits.
    case updateSensorLocation(SensorLocation)
    /// Asks where the meter may sit.
    case requestSupportedSensorLocations
    /// Sets the length of the crank in millimetres, to 0.5.
    case setCrankLength(Double)
    /// Asks for the length of the crank.
    case requestCrankLength
    /// Sets the length of the chain in millimetres.
    case setChainLength(UInt16)
    /// Asks for the length of the chain.
    case requestChainLength
    /// Sets the weight of the chain in grams.
    case setChainWeight(UInt16)
    /// Asks for the weight of the chain.
    case requestChainWeight
    /// Sets the length of the span in millimetres.
    case setSpanLength(UInt16)
    /// Asks for the length of the span.
    case requestSpanLength
    /// Takes the force or torque of now as zero; the rider must not touch the pedals.
    case startOffsetCompensation
    /// Leaves these parts out of measurements from now on.
    case maskMeasurementContent(CyclingPowerMeasurementContent)
    /// Asks how often the meter measures.
    case requestSamplingRate
    /// Asks for the date of the calibration.
    case requestFactoryCalibrationDate
    /// As ``startOffsetCompensation``, with an answer that also carries what the manufacturer wants to say.
    case startEnhancedOffsetCompensation

    /// Appends the op code and its parameter.
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

/// What a power meter answers.
///
///     0x20 | request 1 | result 1 | parameter, the rest
///
/// Spec: Cycling Power Control Point (0x2A66), Cycling Power Service 1.1, 3.5.
public struct CyclingPowerControlPointResponse: ControlPointAnswer {
    /// The op code of the request.
    public let request: UInt8
    /// How it ended.
    public let result: ControlPointResult
    /// What was asked for, in bytes.
    public let parameter: [UInt8]
    /// The specification's name.
    public static var formatName: String { "Cycling Power Control Point" }
    /// 0x20.
    public static var responseCode: UInt8 { 0x20 }

    /// An answer with these parts.
    public init(request: UInt8, result: ControlPointResult, parameter: [UInt8] = []) {
        self.request = request
        self.result = result
        self.parameter = parameter
    }

    /// Where the meter may sit, if that was asked.
    public var supportedLocations: [SensorLocation]? { locations(of: 3) }
    /// The length of the crank in millimetres, if that was asked.
    public var crankLength: Double? { parameter(of: 5, as: UInt16.self).map { Double($0) / 2 } }
    /// The length of the chain in millimetres, if that was asked.
    public var chainLength: UInt16? { parameter(of: 7) }
    /// The weight of the chain in grams, if that was asked.
    public var chainWeight: UInt16? { parameter(of: 9) }
    /// The length of the span in millimetres, if that was asked.
    public var spanLength: UInt16? { parameter(of: 11) }
    /// What was taken as zero: newtons, or 1/32 newton metres where the meter is torque based.
    public var offset: Int16? { parameter(of: 12) }
    /// Measurements per second, if that was asked.
    public var samplingRate: UInt8? { parameter(of: 14) }
    /// The date of the calibration, if that was asked.
    public var factoryCalibrationDate: GATTDateTime? { parameter(of: 15) }
    /// What the enhanced offset compensation took as zero, if that was asked.
    public var enhancedOffset: EnhancedOffset? { parameter(of: 16) }
}

extension CyclingPowerControlPointResponse: DescribedValue {
    package var fields: [ValueField] { answerFields().fields }
}

extension CharacteristicKey where Value == CyclingPowerControlPointRequest {
    /// Cycling Power Control Point, 0x2A66, to write requests to.
    public static var cyclingPowerControlPointRequest: Self { Self(0x2A66) }
}

extension CharacteristicKey where Value == CyclingPowerControlPointResponse {
    /// Cycling Power Control Point, 0x2A66, to subscribe to before a request is written.
    public static var cyclingPowerControlPointResponse: Self { Self(0x2A66) }
}

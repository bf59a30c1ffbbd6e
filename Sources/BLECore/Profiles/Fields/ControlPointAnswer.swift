/// What a control point indicates when it has carried out a request, or has not.
///
///     response code 1 | request 1 | result 1 | parameter, the rest
///
/// Requests and answers share one characteristic: requests are written to it, answers are indicated by it. So each
/// control point has two keys of the same UUID.
public protocol ControlPointAnswer: GATTReadable, Hashable, Sendable {
    /// The first byte of every answer.
    static var responseCode: UInt8 { get }
    /// The op code of the request that this answers.
    var request: UInt8 { get }
    /// How it ended.
    var result: ControlPointResult { get }
    /// What the answer carries besides.
    var parameter: [UInt8] { get }

    /// An answer with these parts.
    init(request: UInt8, result: ControlPointResult, parameter: [UInt8])
}

extension ControlPointAnswer {
    /// Reads one answer; the parameter takes all that is left.
    ///
    /// - Throws: `MalformedPacket` when the bytes end too early or are no answer.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        if try reader.read(UInt8.self) != Self.responseCode { throw reader.invalid("response code") }
        let request: UInt8 = try reader.read()
        let result = ControlPointResult(rawValue: try reader.read())
        self.init(request: request, result: result, parameter: reader.rest())
    }

    /// The parameter as a value of this type, if the request succeeded and the bytes fit.
    func parameter<Value: GATTReadable>(of request: UInt8, as type: Value.Type = Value.self) -> Value? {
        guard self.request == request, result == .success else { return nil }
        return try? Value(value: parameter)
    }

    /// The parameter as a list of places where the sensor may sit.
    func locations(of request: UInt8) -> [SensorLocation]? {
        guard let bytes = parameter(of: request, as: [UInt8].self) else { return nil }
        return bytes.map { SensorLocation(rawValue: $0) }
    }

    package func answerFields() -> FieldList {
        var list = FieldList()
        list.add("answer to request", request)
        list.add("result", result)
        if !parameter.isEmpty { list.add("parameter", text: Hex.encode(parameter)) }
        return list
    }
}

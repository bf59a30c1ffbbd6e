public import BLECore

/// The response that a control point indicates to a request.
///
///     response code 1 | request 1 | result 1 | parameter, the rest
///
/// Requests and responses share one characteristic: requests are written to it, responses are indicated by it. Each
/// control point therefore has two keys with the same UUID.
public protocol ControlPointResponse: GATTReadable, Hashable, Sendable {
    /// The first byte of every response.
    static var responseCode: UInt8 { get }
    /// The opcode of the request that this responds to.
    var request: UInt8 { get }
    /// The result.
    var result: ControlPointResult { get }
    /// The response parameter.
    var parameter: [UInt8] { get }

    /// Creates a response.
    init(request: UInt8, result: ControlPointResult, parameter: [UInt8])
}

extension ControlPointResponse {
    /// Reads one response. The parameter extends to the end of the value.
    ///
    /// - Throws: `MalformedPacket` if the bytes end too early or are not a response.
    public init(reading reader: inout ByteReader) throws(MalformedPacket) {
        if try reader.read(UInt8.self) != Self.responseCode { throw reader.invalid("response code") }
        let request: UInt8 = try reader.read()
        let result = ControlPointResult(rawValue: try reader.read())
        self.init(request: request, result: result, parameter: reader.rest())
    }

    /// Returns the parameter as a value of this type, or `nil` if the request failed or the bytes do not fit.
    func parameter<Value: GATTReadable>(of request: UInt8, as type: Value.Type = Value.self) -> Value? {
        guard self.request == request, result == .success else { return nil }
        return try? Value(value: parameter)
    }

    /// Returns the parameter as a list of sensor locations.
    func locations(of request: UInt8) -> [SensorLocation]? {
        guard let bytes = parameter(of: request, as: [UInt8].self) else { return nil }
        return bytes.map { SensorLocation(rawValue: $0) }
    }

    package func responseFields() -> FieldList {
        var list = FieldList()
        list.add("response to request", request)
        list.add("result", result)
        if !parameter.isEmpty { list.add("parameter", text: Hex.encode(parameter)) }
        return list
    }
}

/// The former name of `ControlPointResponse`.
@available(*, deprecated, renamed: "ControlPointResponse")
public typealias ControlPointAnswer = ControlPointResponse

/// The units that a scale measures in.
public enum MeasurementSystem: Hashable, Sendable {
    /// Kilograms, to 0.005, and metres, to 0.001.
    case metric
    /// Pounds, to 0.01, and inches, to 0.1.
    case imperial

    var massesPerUnit: Double { self == .metric ? 200 : 100 }
    var heightsPerUnit: Double { self == .metric ? 1000 : 10 }

    /// Adds a mass and its unit.
    func add(_ name: String, mass: Double?, to list: inout FieldList) {
        list.add(name, mass, places: self == .metric ? 3 : 2, self == .metric ? "kg" : "lb")
    }

    /// Adds a height and its unit.
    func add(height: Double?, to list: inout FieldList) {
        list.add("height", height, places: self == .metric ? 3 : 1, self == .metric ? "m" : "in")
    }
}

extension ByteReader {
    /// The next mass if it is there, or `nil` where the scale could not measure it.
    @_lifetime(self: copy self)
    mutating func readMass(_ system: MeasurementSystem, if isPresent: Bool = true) throws(MalformedPacket) -> Double? {
        try read(UInt16.self, per: system.massesPerUnit, if: isPresent, unless: .max)
    }

    /// The next height if it is there.
    @_lifetime(self: copy self)
    mutating func readHeight(_ system: MeasurementSystem, if isPresent: Bool) throws(MalformedPacket) -> Double? {
        try read(UInt16.self, per: system.heightsPerUnit, if: isPresent)
    }
}

/// Builds the fields that describe a measurement. Absent values add nothing.
package struct FieldList {
    package private(set) var fields: [ValueField] = []

    package init() {}

    package mutating func add(_ field: ValueField) {
        fields.append(field)
    }

    /// Adds an integer.
    package mutating func add(_ name: String, _ number: (some FixedWidthInteger)?, _ unit: String = "") {
        if let number { fields.append(.number(name, number, unit)) }
    }

    /// Adds a number with `places` decimal places.
    package mutating func add(_ name: String, _ quantity: Double?, places: Int, _ unit: String = "") {
        guard let quantity, let number = Self.decimal(quantity, places: places) else { return }
        fields.append(ValueField(name, number, unit: unit))
    }

    /// Returns the content for a number with `places` decimal places.
    package static func decimal(_ quantity: Double, places: Int) -> ValueField.Content? {
        var scaled = quantity
        for _ in 0..<places { scaled *= 10 }
        guard let mantissa = Int64(exactly: scaled.rounded()) else { return nil }
        return .decimal(DecimalNumber(mantissa, exponent: 0 - places))
    }

    /// Adds several items as one field, so that its name stays unique.
    package mutating func add(_ name: String, _ items: [ValueField.Content], _ unit: String = "") {
        if !items.isEmpty { fields.append(ValueField(name, .list(items), unit: unit)) }
    }

    /// Adds a medical floating-point number, in a unit that is 10^`places` times smaller than the encoded one.
    package mutating func add(
        _ name: String, _ number: MedicalFloat16?, shiftedBy places: Int = 0, _ unit: String = ""
    ) {
        guard let number = number?.number else { return }
        if case .finite(let mantissa, let exponent) = number {
            fields.append(.scaled(name, mantissa, exponent: Int(exponent) + places, unit))
        } else {
            fields.append(ValueField(name, number.content, unit: unit))
        }
    }

    /// Adds a time in whole seconds.
    package mutating func add(_ name: String, _ time: Duration?) {
        if let time { fields.append(.number(name, time.components.seconds, "s")) }
    }

    /// Adds a date and time.
    package mutating func add(_ name: String, _ moment: GATTDateTime?) {
        if let moment { fields.append(ValueField(name, .text(moment.description))) }
    }

    /// Adds the names of the set bits, if any.
    package mutating func add(_ name: String, _ bits: (some NamedBits)?) {
        if let bits, !bits.words.isEmpty { fields.append(ValueField(name, bits.content)) }
    }

    /// Adds a named code.
    package mutating func add(_ name: String, _ code: (some NamedCode)?) {
        if let code { fields.append(ValueField(name, code.content)) }
    }

    /// Adds a flag.
    package mutating func add(_ name: String, flag: Bool?) {
        if let flag { fields.append(ValueField(name, .flag(flag))) }
    }

    /// Adds a field without a value, and the reason.
    package mutating func add(_ name: String, missing reason: String) {
        fields.append(ValueField(name, .missing(reason)))
    }

    /// Adds quoted text, for text from outside.
    package mutating func add(_ name: String, quoted text: String?) {
        if let text { fields.append(ValueField(name, .quoted(text))) }
    }

    /// Adds text as is.
    package mutating func add(_ name: String, text: String?) {
        if let text { fields.append(ValueField(name, .text(text))) }
    }
}

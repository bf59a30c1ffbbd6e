/// Builds the list of what a measurement says. What is absent adds nothing.
package struct FieldList {
    package private(set) var fields: [ValueField] = []

    package init() {}

    /// A field as it is.
    package mutating func add(_ field: ValueField) {
        fields.append(field)
    }

    /// A whole number.
    package mutating func add(_ name: String, _ number: (some FixedWidthInteger)?, _ unit: String = "") {
        if let number { fields.append(.number(name, number, unit)) }
    }

    /// A number that was sent with so many decimal places.
    package mutating func add(_ name: String, _ quantity: Double?, places: Int, _ unit: String = "") {
        guard let quantity, let number = Self.decimal(quantity, places: places) else { return }
        fields.append(ValueField(name, number, unit: unit))
    }

    /// The content for a number that was sent with so many decimal places.
    package static func decimal(_ quantity: Double, places: Int) -> ValueField.Content? {
        var scaled = quantity
        for _ in 0..<places { scaled *= 10 }
        guard let mantissa = Int64(exactly: scaled.rounded()) else { return nil }
        return .decimal(DecimalNumber(mantissa, exponent: 0 - places))
    }

    /// Several of the same kind, if there are any: one field, so that its key stays unique.
    package mutating func add(_ name: String, _ items: [ValueField.Content], _ unit: String = "") {
        if !items.isEmpty { fields.append(ValueField(name, .list(items), unit: unit)) }
    }

    /// A number as medical devices write it, in a unit that is 10^`places` times smaller than theirs.
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

    /// A time in whole seconds.
    package mutating func add(_ name: String, _ time: Duration?) {
        if let time { fields.append(.number(name, time.components.seconds, "s")) }
    }

    /// A date and a time of day.
    package mutating func add(_ name: String, _ moment: GATTDateTime?) {
        if let moment { fields.append(ValueField(name, .text(moment.description))) }
    }

    /// Bits with names, if any of them is set.
    package mutating func add(_ name: String, _ bits: (some NamedBits)?) {
        if let bits, !bits.words.isEmpty { fields.append(ValueField(name, bits.content)) }
    }

    /// A number that stands for a word.
    package mutating func add(_ name: String, _ code: (some NamedCode)?) {
        if let code { fields.append(ValueField(name, code.content)) }
    }

    /// Something that is so or not.
    package mutating func add(_ name: String, flag: Bool?) {
        if let flag { fields.append(ValueField(name, .flag(flag))) }
    }

    /// Nothing, and why.
    package mutating func add(_ name: String, missing reason: String) {
        fields.append(ValueField(name, .missing(reason)))
    }

    /// Text that somebody wrote.
    package mutating func add(_ name: String, quoted text: String?) {
        if let text { fields.append(ValueField(name, .quoted(text))) }
    }

    /// Words as they are.
    package mutating func add(_ name: String, text: String?) {
        if let text { fields.append(ValueField(name, .text(text))) }
    }
}

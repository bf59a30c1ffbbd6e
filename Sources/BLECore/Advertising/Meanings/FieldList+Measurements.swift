extension FieldList {
    /// A number times 10^`exponent`, as the device sends it; `nil` is what the device does not know.
    mutating func measured(
        _ name: String, _ number: (some FixedWidthInteger)?, exponent: Int = 0, _ unit: String = ""
    ) {
        guard let number else { return add(name, missing: "not known") }
        if exponent == 0 { return add(name, number, unit) }
        add(ValueField.scaled(name, number, exponent: exponent, unit))
    }

    /// A word that tells by itself what it is, such as "open".
    mutating func add(_ name: String, word: String?) {
        if let word { add(ValueField(name, .text(word), showsName: false)) }
    }

    /// A field that may come several times: the second is called "name 2", and so on.
    mutating func add(numbered field: ValueField) {
        var (name, number) = (field.name, 1)
        while fields.contains(where: { $0.name == name }) {
            number += 1
            name = "\(field.name) \(number)"
        }
        add(ValueField(name, field.content, unit: field.unit, showsName: field.showsName))
    }
}

internal import BLECore

extension FieldList {
    /// Adds a number scaled by 10^`exponent`; `nil` means that the device reports it as unknown.
    ///
    /// At most `shownPlaces` decimal places are displayed.
    mutating func measured(
        _ name: String, _ number: (some FixedWidthInteger)?, exponent: Int = 0, shownPlaces: Int? = nil,
        _ unit: String = ""
    ) {
        guard let number else { return add(name, missing: "not known") }
        if exponent == 0 { return add(name, number, unit) }
        let content = ValueField.Content.decimal(DecimalNumber(number, exponent: exponent))
        add(ValueField(name, content, unit: unit, shownPlaces: shownPlaces))
    }

    /// Adds the fields that `add` adds to a list, as the state of the sender itself.
    mutating func ofSender(_ add: (inout FieldList) -> Void) {
        var list = FieldList()
        add(&list)
        for field in list.fields { self.add(field.ofSender) }
    }

    /// Adds a self-explanatory word, such as "open".
    mutating func add(_ name: String, word: String?) {
        if let word { add(ValueField(name, .text(word), showsName: false)) }
    }

    /// Adds a field that may occur several times: the second is named "name 2", and so on.
    mutating func add(numbered field: ValueField) {
        var (name, number) = (field.name, 1)
        while fields.contains(where: { $0.name == name }) {
            number += 1
            name = "\(field.name) \(number)"
        }
        add(
            ValueField(
                name, field.content, unit: field.unit, showsName: field.showsName, isOfSender: field.isOfSender,
                shownPlaces: field.shownPlaces))
    }
}

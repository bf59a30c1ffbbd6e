/// One thing that a value says, ready for people and for programs.
package struct ValueField: Hashable, Sendable {
    /// What a field holds.
    package indirect enum Content: Hashable, Sendable {
        case integer(Int64)
        case decimal(DecimalNumber)
        /// A binary floating-point number: programs read `null` where it is not finite.
        case float(Double)
        case text(String)
        /// Text that the device's maker or user wrote: people read it in quotes.
        case quoted(String)
        /// People read "skin contact" or "no skin contact".
        case flag(Bool)
        /// A number that has a name: people read the name, programs the number.
        case named(Int64, String)
        /// Nothing, and why: people read the reason, programs `null`.
        case missing(String)
        /// People read one item for each, or "none"; programs an array.
        case list([Content])
    }

    /// The field's name in lowercase words; empty when the value has no other field and is known by itself.
    package let name: String
    package let content: Content
    /// The unit behind a number, such as "bpm"; for people only.
    package let unit: String

    package init(_ name: String, _ content: Content, unit: String = "") {
        self.name = name
        self.content = content
        self.unit = unit
    }

    /// The only field of a value.
    package init(_ content: Content, unit: String = "") {
        self.init("", content, unit: unit)
    }

    /// A whole number.
    package static func number(_ name: String, _ value: some FixedWidthInteger, _ unit: String = "") -> Self {
        Self(name, .integer(Int64(clamping: value)), unit: unit)
    }

    /// A number times a power of ten.
    package static func scaled(
        _ name: String, _ value: some FixedWidthInteger, exponent: Int, _ unit: String = ""
    ) -> Self {
        Self(name, .decimal(DecimalNumber(value, exponent: exponent)), unit: unit)
    }

    /// The name as a key for programs: "heart rate" becomes "heartRate".
    package var key: String {
        var words = ""
        for word in name.split(whereSeparator: { $0 == " " || $0 == "-" }) {
            let lower = word.lowercased()
            words += words.isEmpty ? lower : lower.prefix(1).uppercased() + lower.dropFirst()
        }
        return words
    }

    /// What people read, such as "heart rate 72 bpm".
    package var text: String { text(of: content) }

    private func text(of content: Content) -> String {
        switch content {
        case .integer(let number): labelled(quantity("\(number)"))
        case .decimal(let number): labelled(quantity(number.description))
        case .float(let number): labelled(quantity("\(number)"))
        case .text(let text), .named(_, let text), .missing(let text): labelled(text)
        case .quoted(let text): labelled("\"\(text)\"")
        case .flag(let isSet): isSet ? name : "no \(name)"
        case .list(let items): list(items)
        }
    }

    private func list(_ items: [Content]) -> String {
        if items.isEmpty { return labelled("none") }
        var text = ""
        for item in items { text += (text.isEmpty ? "" : ", ") + self.text(of: item) }
        return text
    }

    private func labelled(_ text: String) -> String {
        name.isEmpty ? text : "\(name) \(text)"
    }

    private func quantity(_ digits: String) -> String {
        unit.isEmpty ? digits : "\(digits) \(unit)"
    }
}

/// A value that can say what it means.
package protocol DescribedValue: SendableMetatype {
    /// What the value says, in the order in which people want to read it.
    var fields: [ValueField] { get }
}

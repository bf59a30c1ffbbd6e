/// One thing that a value says, ready for people and for programs.
public struct ValueField: Hashable, Sendable {
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
    public let name: String
    package let content: Content
    /// The unit behind a number, such as "bpm"; empty for what has none.
    public let unit: String
    /// Whether people need the name too: a word such as "AirPods" tells by itself what it is.
    package let showsName: Bool

    package init(_ name: String, _ content: Content, unit: String = "", showsName: Bool = true) {
        self.name = name
        self.content = content
        self.unit = unit
        self.showsName = showsName
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
    public var key: String {
        var words = ""
        for word in name.split(whereSeparator: { $0 == " " || $0 == "-" }) {
            let lower = word.lowercased()
            words += words.isEmpty ? lower : lower.prefix(1).uppercased() + lower.dropFirst()
        }
        return words
    }

    /// What people read, such as "heart rate 72 bpm".
    public var text: String { text(of: content) }

    /// The number, in the field's unit; `nil` where the field is none, or where the device does not know it.
    public var number: Double? {
        switch content {
        case .integer(let number), .named(let number, _): Double(number)
        case .decimal(let number): number.double
        case .float(let number): number.isFinite ? number : nil
        case .text, .quoted, .flag, .missing, .list: nil
        }
    }

    /// Whether it is so; `nil` where the field is no yes or no.
    public var flag: Bool? {
        if case .flag(let isSet) = content { isSet } else { nil }
    }

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
        name.isEmpty || !showsName ? text : "\(name) \(text)"
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

/// One field of a decoded value, for display and for programs.
public struct ValueField: Hashable, Sendable {
    /// The content of a field.
    package indirect enum Content: Hashable, Sendable {
        case integer(Int64)
        case decimal(DecimalNumber)
        /// A binary floating-point number; `null` for programs if it is not finite.
        case float(Double)
        case text(String)
        /// Text from the device's vendor or user; displayed in quotes.
        case quoted(String)
        /// Displayed as "skin contact" or "no skin contact".
        case flag(Bool)
        /// A named number: displayed as the name, a number for programs.
        case named(Int64, String)
        /// No value, with the reason: displayed as the reason, `null` for programs.
        case missing(String)
        /// Displayed as a list, or "none"; an array for programs.
        case list([Content])
    }

    /// The field's name in lowercase; empty if it is the only field of a self-explanatory value.
    public let name: String
    package let content: Content
    /// The unit after a number, such as "bpm"; empty if there is none.
    public let unit: String
    /// True if the name is displayed too; a word such as "AirPods" needs none.
    package let showsName: Bool
    /// True for the state of the device that sends it, such as its battery: no measurement of anything else.
    package let isOfSender: Bool
    /// The most decimal places that are displayed, for a number in steps that are no power of ten; `nil` for all.
    /// Programs get the exact number.
    package let shownPlaces: Int?

    package init(
        _ name: String, _ content: Content, unit: String = "", showsName: Bool = true, isOfSender: Bool = false,
        shownPlaces: Int? = nil
    ) {
        self.name = name
        self.content = content
        self.unit = unit
        self.showsName = showsName
        self.isOfSender = isOfSender
        self.shownPlaces = shownPlaces
    }

    /// Creates the only field of a value.
    package init(_ content: Content, unit: String = "") {
        self.init("", content, unit: unit)
    }

    /// Creates a field with an integer.
    package static func number(_ name: String, _ value: some FixedWidthInteger, _ unit: String = "") -> Self {
        Self(name, .integer(Int64(clamping: value)), unit: unit)
    }

    /// Creates a field with an integer times a power of ten.
    package static func scaled(
        _ name: String, _ value: some FixedWidthInteger, exponent: Int, _ unit: String = ""
    ) -> Self {
        Self(name, .decimal(DecimalNumber(value, exponent: exponent)), unit: unit)
    }

    /// The same field, marked as one about the device that sends it.
    package var ofSender: Self {
        Self(name, content, unit: unit, showsName: showsName, isOfSender: true, shownPlaces: shownPlaces)
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

    /// The display text, such as "heart rate 72 bpm".
    public var text: String { text(of: content) }

    /// The number in the field's unit, or `nil` if the field is not a number or the value is not known.
    public var number: Double? {
        switch content {
        case .integer(let number), .named(let number, _): Double(number)
        case .decimal(let number): number.double
        case .float(let number): number.isFinite ? number : nil
        case .text, .quoted, .flag, .missing, .list: nil
        }
    }

    /// The flag, or `nil` if the field is not a flag.
    public var flag: Bool? {
        if case .flag(let isSet) = content { isSet } else { nil }
    }

    private func text(of content: Content) -> String {
        switch content {
        case .integer(let number): labelled(quantity("\(number)"))
        case .decimal(let number):
            labelled(quantity((shownPlaces.map { number.rounded(toPlaces: $0) } ?? number).description))
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

/// A value that can be described as fields.
package protocol DescribedValue: SendableMetatype {
    /// The decoded fields, in display order.
    var fields: [ValueField] { get }
}

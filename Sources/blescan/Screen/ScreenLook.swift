import Glibc

/// The capabilities of a terminal: colours, and characters beyond ASCII.
struct ScreenLook: Hashable, Sendable {
    var isColoured: Bool
    var isUnicode: Bool

    /// The look of lines without styles.
    static let plain = ScreenLook(isColoured: false, isUnicode: true)
}

extension ScreenLook {
    /// Creates a look from the environment; `choice` takes precedence.
    ///
    /// Without colour there are no other attributes either: a character conveys the same.
    init(_ choice: ColorChoice, environment: (String) -> String? = Self.variable) {
        switch choice {
        case .always: isColoured = true
        case .never: isColoured = false
        case .auto:
            isColoured = (environment("NO_COLOR") ?? "").isEmpty && !["", "dumb"].contains(environment("TERM") ?? "")
        }
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap(environment).first { !$0.isEmpty } ?? "C"
        let characters = locale.split(separator: ".").last?.uppercased() ?? ""
        isUnicode = characters.hasPrefix("UTF-8") || characters.hasPrefix("UTF8")
    }

    /// Returns a variable of the environment.
    static func variable(_ name: String) -> String? {
        unsafe getenv(name).map { unsafe String(cString: $0) }
    }
}

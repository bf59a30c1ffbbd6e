// Texts in the form of `printf`, from arguments whose types are known.
//
// Apple's compiler compares the format of a message with its arguments; the one for Linux does not, and C's `printf`
// takes whatever stands in an argument's place for what the format says: `%s` with a number would follow the number as
// an address. Here each argument is written by its own type. One that does not fit is written as its description, and
// one that is not there as `<missing>`.

import Foundation

enum LogFormat {
    /// A conversion, such as `%-8.3f`.
    private struct Conversion {
        var flags = ""
        var width: Int?
        var precision: Int?
        var kind: Character = "@"

        /// The conversion for C, with another type.
        func format(_ type: String) -> String {
            "%" + flags + (width.map(String.init) ?? "") + (precision.map { ".\($0)" } ?? "") + type
        }

        /// A text, cut to the precision and padded to the width.
        func text(_ text: String) -> String {
            let cut = precision.map { String(text.prefix($0)) } ?? text
            let padding = String(repeating: " ", count: max(0, (width ?? 0) - cut.count))
            return flags.contains("-") ? cut + padding : padding + cut
        }
    }

    /// A width or a precision beyond this one is taken for this one.
    private static let widthLimit = 1_024

    /// Returns the text of a message.
    static func text(_ format: String, _ arguments: [any CVarArg]) -> String {
        var rest = Substring(format)
        var arguments = arguments[...]
        var text = ""
        while let character = rest.popFirst() {
            guard character == "%" else {
                text.append(character)
                continue
            }
            guard let conversion = conversion(&rest, &arguments) else { return text + "%" }
            switch conversion.kind {
            case "%": text += "%"
            case "m": text += conversion.text(String(cString: strerror(errno)))
            default: text += arguments.popFirst().map { written($0, by: conversion) } ?? "<missing>"
            }
        }
        return text
    }

    private static func conversion(_ rest: inout Substring, _ arguments: inout ArraySlice<any CVarArg>) -> Conversion? {
        var conversion = Conversion()
        // `{public}` and its like.
        if rest.first == "{", let end = rest.firstIndex(of: "}") { rest = rest[rest.index(after: end)...] }
        while let flag = rest.first, "-+ #0'".contains(flag) {
            conversion.flags.append(rest.removeFirst())
        }
        conversion.width = number(&rest, &arguments)
        if let width = conversion.width, width < 0 {
            conversion.flags.append("-")
            conversion.width = -width
        }
        if rest.first == "." {
            rest.removeFirst()
            conversion.precision = max(0, number(&rest, &arguments) ?? 0)
        }
        while let length = rest.first, "hlqLztj".contains(length) { rest.removeFirst() }
        guard let kind = rest.popFirst() else { return nil }
        conversion.kind = kind
        return conversion
    }

    private static func number(_ rest: inout Substring, _ arguments: inout ArraySlice<any CVarArg>) -> Int? {
        if rest.first == "*" {
            rest.removeFirst()
            let value = (arguments.popFirst() as? any BinaryInteger).map { Int(clamping: $0) } ?? 0
            return min(max(value, -widthLimit), widthLimit)
        }
        var value: Int?
        while let digit = rest.first?.wholeNumberValue, rest.first?.isASCII == true {
            value = min((value ?? 0) * 10 + digit, widthLimit)
            rest.removeFirst()
        }
        return value
    }

    private static func written(_ argument: any CVarArg, by conversion: Conversion) -> String {
        switch conversion.kind {
        case "d", "i", "D":
            if let value = integer(argument) {
                return String(format: conversion.format("lld"), Int64(truncatingIfNeeded: value))
            }
        case "u", "U", "x", "X", "o", "O":
            if let value = integer(argument) {
                let type = conversion.kind == "X" ? "llX" : "ll" + conversion.kind.lowercased()
                return String(format: conversion.format(type), bits(of: value))
            }
        case "c", "C":
            if let value = integer(argument), let scalar = Unicode.Scalar(UInt32(truncatingIfNeeded: value)) {
                return conversion.text(String(scalar))
            }
        case "f", "F", "e", "E", "g", "G", "a", "A":
            if let value = argument as? any BinaryFloatingPoint {
                return String(format: conversion.format(String(conversion.kind)), Double(value))
            }
        case "s":
            if let pointer = argument as? UnsafePointer<CChar> { return conversion.text(String(cString: pointer)) }
            if let pointer = argument as? UnsafeMutablePointer<CChar> {
                return conversion.text(String(cString: pointer))
            }
        default: break
        }
        return conversion.text("\(argument)")
    }

    private static func integer(_ argument: any CVarArg) -> (any BinaryInteger)? {
        if let value = argument as? any BinaryInteger { return value }
        return (argument as? Bool).map { $0 ? 1 : 0 }
    }

    /// The bits of a number as C passes it: at least 32 of them.
    private static func bits(of value: some BinaryInteger) -> UInt64 {
        value.bitWidth > 32 ? UInt64(truncatingIfNeeded: value) : UInt64(UInt32(truncatingIfNeeded: value))
    }
}

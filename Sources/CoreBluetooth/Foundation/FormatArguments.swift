// Objects as arguments of formats: `String(format: "%@", peripheral)`. On Apple's systems every object can be one; on
// Linux Foundation follows the pointer of its own strings alone, and any other object ends the program. So an object is
// passed as the text of its description.

internal import BLELinux

extension CBUUID: CVarArg {
    /// The text of the UUID as an argument of `%@`.
    public var _cVarArgEncoding: [Int] { FormatArguments.encoding(of: description) }
}

extension CBAttribute: CVarArg {
    /// The description as an argument of `%@`.
    public var _cVarArgEncoding: [Int] { FormatArguments.encoding(of: description) }
}

extension CBPeer: CVarArg {
    /// The description as an argument of `%@`.
    public var _cVarArgEncoding: [Int] { FormatArguments.encoding(of: description) }
}

extension CBATTRequest: CVarArg {
    /// The description as an argument of `%@`.
    public var _cVarArgEncoding: [Int] { FormatArguments.encoding(of: description) }
}

extension CBL2CAPChannel: CVarArg {
    /// The description as an argument of `%@`.
    public var _cVarArgEncoding: [Int] { FormatArguments.encoding(of: description) }
}

extension CBManager: CVarArg {
    /// The description as an argument of `%@`.
    public var _cVarArgEncoding: [Int] { FormatArguments.encoding(of: description) }
}

private enum FormatArguments {
    /// The texts that were passed last. A format is done with its arguments before that many others are passed.
    private static let kept = Lock<(texts: [NSString], next: Int)>(([], 0))
    private static let limit = 1_024

    static func encoding(of description: String) -> [Int] {
        let text = NSString(string: description)
        kept.withLock { kept in
            if kept.texts.count < limit { kept.texts.append(text) } else { kept.texts[kept.next] = text }
            kept.next = (kept.next + 1) % limit
        }
        // The text lives in `kept` for as long as the format uses the pointer.
        return unsafe [Int(bitPattern: Unmanaged.passUnretained(text).toOpaque())]
    }
}

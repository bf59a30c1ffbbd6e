import BLECore

/// A difference between a run and the recording.
struct Mismatch: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) {
        self.description = description
    }

    static func unless(_ condition: Bool, _ text: @autoclosure () -> String) throws(Mismatch) {
        if !condition { throw Mismatch(text()) }
    }
}

func bytes(_ hex: String?) throws -> [UInt8] {
    try Hex.decode(hex ?? "")
}

func uuid(_ text: String?) throws -> BluetoothUUID {
    guard let uuid = BluetoothUUID(text ?? "") else { throw Mismatch("no UUID: \(text ?? "nothing")") }
    return uuid
}

import BLECore
import BLEProfiles
import Testing

/// The bytes of one characteristic, what they must say, and where they come from.
struct GoldenValue: CustomTestStringConvertible {
    let uuid: BluetoothUUID
    let hex: String
    let text: String
    let origin: String

    /// `origin` names the second source: a device's capture, another implementation's test, or a specification's table.
    init(_ uuid: BluetoothUUID, _ hex: String, _ text: String, _ origin: String) {
        self.uuid = uuid
        self.hex = hex
        self.text = text
        self.origin = origin
    }

    var testDescription: String { "\(uuid) \(hex)" }

    func bytes() throws -> [UInt8] { try Hex.decode(hex) }

    func check() throws {
        #expect(ValueDescription.of(uuid: uuid, value: try bytes())?.text == text, "\(origin)")
    }

    static let all = [
        BloodPressureTests.goldens, CyclingTests.goldens, CyclingPowerTests.goldens,
        FitnessMachineControlTests.goldens, FitnessMachineDataTests.goldens, GlucoseTests.goldens,
        PulseOximeterTests.goldens, RunningTests.goldens, WeightScaleTests.goldens,
    ].flatMap { $0 }
}

/// Every ready-made value against damaged bytes.
@Suite struct ProfileDamageTests {
    @Test func everyReadyMadeValueHasGoldenBytes() {
        let covered = Set(GoldenValue.all.map(\.uuid) + ValueDescriptionTests.goldens.map { BluetoothUUID($0.0) })
        #expect(ValueDescription.knownUUIDs.filter { !covered.contains($0) }.isEmpty)
    }

    /// A program finds every field by its key, and the field is always the same kind of JSON.
    @Test func keysAreUniqueAndOfOneKind() throws {
        var kinds: [String: String] = [:]
        let goldens =
            try GoldenValue.all.map { ($0.uuid, try $0.bytes()) }
            + ValueDescriptionTests.goldens.map { (BluetoothUUID($0.0), try Hex.decode($0.1)) }
        for (uuid, bytes) in goldens {
            guard let fields = ValueDescription.of(uuid: uuid, value: bytes)?.fields else { continue }
            let keys = fields.map(\.key)
            #expect(Set(keys).count == keys.count, "\(uuid) \(keys)")
            #expect(keys.count < 2 || !keys.contains(""), "\(uuid) \(keys)")
            for field in fields {
                guard let kind = kind(of: field.content) else { continue }
                let name = "\(uuid) \(field.key)"
                #expect(kinds[name, default: kind] == kind, "\(name)")
                kinds[name] = kind
            }
        }
    }

    /// What a program reads; `nil` for what is missing, which every field may be.
    private func kind(of content: ValueField.Content) -> String? {
        switch content {
        case .integer, .decimal, .float, .named: "number"
        case .text, .quoted: "string"
        case .flag: "flag"
        case .list: "list"
        case .missing: nil
        }
    }

    /// Nothing traps: not the bytes of a value cut anywhere, not with any bit flipped, and not read as another type.
    /// What is cut is nearly always refused; texts, lists and optional parts at the end may be shorter.
    @Test func damagedBytesNeverTrap() throws {
        var cut = 0
        var understood = 0
        for golden in GoldenValue.all {
            let bytes = try golden.bytes()
            #expect(read(bytes, as: [golden.uuid]) == 1)
            for length in 0..<bytes.count {
                cut += 1
                understood += read(Array(bytes.prefix(length)), as: [golden.uuid])
            }
            for index in bytes.indices {
                for mask in [0x01, 0x10, 0x80, 0xFF] as [UInt8] {
                    var damaged = bytes
                    damaged[index] ^= mask
                    _ = read(damaged, as: [golden.uuid])
                    _ = read(damaged + [0xFF, 0xFF], as: [golden.uuid])
                }
            }
            _ = read(bytes, as: ValueDescription.knownUUIDs)
        }
        #expect(cut > 500 && understood * 10 < cut, "\(understood) of \(cut)")
    }

    /// Values of every length, filled with the same byte.
    @Test(arguments: [0x00, 0x01, 0x7F, 0x80, 0xFF] as [UInt8])
    func everyLengthOfOneByteNeverTraps(fill: UInt8) {
        for length in 0...64 {
            _ = read([UInt8](repeating: fill, count: length), as: ValueDescription.knownUUIDs)
        }
    }

    private func read(_ bytes: [UInt8], as uuids: [BluetoothUUID]) -> Int {
        uuids.filter { ValueDescription.of(uuid: $0, value: bytes)?.text != nil }.count
    }
}

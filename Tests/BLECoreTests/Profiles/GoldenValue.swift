import BLECore
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
        let covered = Set(GoldenValue.all.map(\.uuid))
        let mine = (DescribedCharacteristic.sports + DescribedCharacteristic.health).flatMap { $0 }
        #expect(mine.map(\.uuid).filter { !covered.contains($0) }.isEmpty)
    }

    /// Nothing traps: not the bytes of a value cut anywhere, not with any bit flipped, and not read as another type.
    @Test func damagedBytesNeverTrap() throws {
        var understood = 0
        for golden in GoldenValue.all {
            let bytes = try golden.bytes()
            for length in 0...bytes.count { understood += read(Array(bytes[..<length]), as: [golden.uuid]) }
            for index in bytes.indices {
                for mask in [0x01, 0x10, 0x80, 0xFF] as [UInt8] {
                    var damaged = bytes
                    damaged[index] ^= mask
                    understood += read(damaged, as: [golden.uuid])
                    understood += read(damaged + [0xFF, 0xFF], as: [golden.uuid])
                }
            }
            understood += read(bytes, as: ValueDescription.knownUUIDs)
        }
        #expect(understood >= GoldenValue.all.count)
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

import BLECore
import Testing

@testable import blescan

/// Long values as rows of bytes, which `read` prints for users.
@Suite struct HexDumpTests {
    private static let bytes = [UInt8](0x1C...0x44)

    private func dump(in columns: Int) -> [String] { HexDump.lines(of: Self.bytes, in: columns).map(\.plain) }

    @Test func aRowHasAnOffsetBytesAndCharacters() {
        let wide = [
            "0000  1c 1d 1e 1f 20 21 22 23  24 25 26 27 28 29 2a 2b  .... !\"#$%&'()*+",
            "0010  2c 2d 2e 2f 30 31 32 33  34 35 36 37 38 39 3a 3b  ,-./0123456789:;",
            "0020  3c 3d 3e 3f 40 41 42 43  44                       <=>?@ABCD",
        ]
        #expect(dump(in: 120) == wide)
        #expect(dump(in: 80) == wide)
        #expect(
            dump(in: 40) == [
                "0000  1c 1d 1e 1f 20 21 22 23  .... !\"#", "0008  24 25 26 27 28 29 2a 2b  $%&'()*+",
                "0010  2c 2d 2e 2f 30 31 32 33  ,-./0123", "0018  34 35 36 37 38 39 3a 3b  456789:;",
                "0020  3c 3d 3e 3f 40 41 42 43  <=>?@ABC", "0028  44                       D",
            ])
    }

    @Test(arguments: [(120, 16), (72, 16), (71, 8), (39, 8), (38, 4), (23, 4), (10, 4)])
    func rowsFitTheTerminal(_ columns: Int, _ length: Int) {
        let lines = HexDump.lines(of: Self.bytes, in: columns)
        #expect(lines.count == (Self.bytes.count + length - 1) / length)
        #expect(lines.allSatisfy { $0.width <= max(columns, 23) })
        #expect(HexDump.lines(of: [], in: columns).isEmpty)
    }

    @Test func onlyLongValuesOnATerminalAreDumped() {
        func lines(
            _ count: Int, _ form: OperationOutput.Form, _ uuid: BluetoothUUID?, _ label: String?, in columns: Int? = 80
        ) -> [String] {
            let value = [UInt8](repeating: 0x41, count: count)
            let output = OperationOutput(peer: "demo:battery", form: form, columns: { columns })
            return output.lines(ofReading: value, at: 3, uuid, label: label).map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        #expect(lines(32, .plain, 0xFFF1, nil).count == 1)
        let long = lines(33, .plain, 0x2A00, "0x0003 Device Name")
        #expect(long.count == 4)
        #expect(long[0] == "0x0003 Device Name  33 bytes  \"" + String(repeating: "A", count: 33) + "\"")
        #expect(long[3] == "0020  41" + String(repeating: " ", count: 48) + "A")
        #expect(lines(33, .plain, 0x2A00, nil, in: nil).count == 1, "for a script")
        for form in [OperationOutput.Form.hex, .json, .csv] { #expect(lines(512, form, 0x2A00, nil).count == 1) }
    }

    @Test(arguments: [40, 80, 120] as [UInt16]) func theWidthIsThatOfTheTerminal(_ columns: UInt16) async throws {
        let terminal = try PseudoTerminal(columns: columns)
        let outcome = try await BuiltProgram.run(
            ["read", "demo:long-value", "fff1", "--color", "never"], output: .terminal(terminal))
        #expect(outcome.status == 0)
        let lines = try await terminal.whole().split(whereSeparator: \.isNewline)
        #expect(lines.first == "512 bytes")
        #expect(lines.count == 1 + 512 / (columns == 40 ? 8 : 16))
        #expect(lines.allSatisfy { $0.count <= Int(columns) })
    }
}

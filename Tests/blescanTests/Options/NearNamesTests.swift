import BLECore
import Testing

@testable import blescan

@Suite struct NearNamesTests {
    private static let characteristics = AssignedNumbers.characteristicNames

    @Test(
        arguments: [
            ("battery-levle", ["battery-level"]), ("Batery Level", ["battery-level"]),
            ("batterylevel", ["battery-level"]), ("heart-rate-mesurement", ["heart-rate-measurement"]),
            ("manufacturer", ["manufacturer-name-string"]), ("xx", []), ("", []), ("tea-making", []),
        ] as [(String, [String])])
    func slipsAndPartsFindTheMeantName(_ text: String, _ names: [String]) {
        let near = NearNames.near(text, in: Self.characteristics)
        #expect(near.starts(with: names) && near.isEmpty == names.isEmpty, "\(near)")
    }

    /// A suggestion can be pasted back.
    @Test func everyNameIsUnderstood() throws {
        #expect(Self.characteristics.count > 400)
        for name in Self.characteristics.map(NearNames.written) {
            #expect(AssignedNumbers.characteristic(named: name) != nil, "\(name)")
        }
        for name in AssignedNumbers.serviceNames.map(NearNames.written) {
            #expect(AssignedNumbers.service(named: name) != nil, "\(name)")
        }
    }

    @Test func listsAreCut() {
        #expect(NearNames.list(["a"]) == "a")
        #expect(NearNames.list(["a", "b", "c"]) == "a, b or c")
        let many = NearNames.list((1...15).map { "n\($0)" })
        #expect(many.hasSuffix("n12 or one of 3 more"))
    }
}

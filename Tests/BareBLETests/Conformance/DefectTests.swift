import BareBLE
import BareBLETestKit
import Foundation
import TestSupport
import Testing

/// Defects of other clients in handling peers, each as a fixture or a test of this project.
@Suite("Defects of other clients", .timeLimit(.minutes(10)))
struct DefectTests {
    private static let fixtures: [String] = {
        let folder = RepositoryFiles.root.appending(path: "Fixtures/att/defects")
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return files.filter { $0.hasSuffix(".dialogue") }.map { String($0.dropLast(9)) }.sorted()
    }()

    @Test("A fixture", arguments: fixtures)
    func everyFixtureOfADefectPlaysToItsEnd(_ name: String) async throws {
        let calls = try DialogueCalls(try RepositoryFiles.text("Fixtures/att/defects/\(name).dialogue"))
        #expect(calls.dialogue.header("defect") != nil && calls.dialogue.header("origin") != nil)
        try await calls.play()
    }

    /// Every row has a proof that exists, and every fixture a row.
    @Test func theTableIsComplete() throws {
        #expect(DefectTable.stacks.map(\.id) == (1...9).map { "L\($0)" })
        #expect(DefectTable.client.map(\.id) == (1...25).map { "C\($0)" })
        var used: Set<String> = []
        for row in DefectTable.stacks + DefectTable.client {
            #expect(!row.proofs.isEmpty, "\(row.id)")
            for proof in row.proofs {
                switch proof {
                case .fixture(let name):
                    used.insert(name)
                    #expect(Self.fixtures.contains(name), "\(row.id): no fixture \(name)")
                case .test(let file, let function):
                    let text = try RepositoryFiles.text("Tests/\(file).swift")
                    #expect(text.contains("func \(function)("), "\(row.id): no test \(function) in \(file)")
                case .notApplicable(let reason):
                    #expect(!reason.isEmpty)
                }
            }
        }
        #expect(used == Set(Self.fixtures))
    }

    /// A reader that sleeps between events would need more than the time limit for them.
    @Test(.row("H17"), .virtualTime) func aThousandReportsArriveWithoutAPause() async throws {
        let bench = try await AdapterBench()
        let deliveries = Deliveries()
        let scan = try await bench.adapter.subscribe(.balanced, deliveries.receive)
        let device = BluetoothAddress(rawValue: 0xC000_0000_0001)
        for batch in 0..<10 {
            for number in 0..<100 as Range<UInt8> {
                await bench.controller.advertise(device, [3, 0x09, UInt8(0x41 + batch), number + 1])
            }
            await deliveries.wait { $0.count == 100 * (batch + 1) }
        }
        await bench.adapter.unsubscribe(scan)
    }

    @Test func noSignalIsInvented() async throws {
        let device = try await Central().attach(to: VirtualPeripheral(.battery))
        await #expect(throws: error(.notSupported)) { try await device.rssi() }
    }

    @Test func noDependencyIsABranch() throws {
        let manifest = try RepositoryFiles.text("Package.swift")
        #expect(manifest.contains(".package(url:"))
        #expect(!manifest.contains("branch:"))
    }
}

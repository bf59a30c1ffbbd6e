import BLECore
import Foundation
import TestSupport
import Testing

@testable import blescan

/// The report of the self-test: its verdict, its JSON and its screen.
@Suite struct SelfTestReportTests {
    private static func report(_ change: (inout SelfTestReport) -> Void = { _ in }) -> SelfTestReport {
        var report = SelfTestReport()
        report.date = "2026-11-26T10:00:00.000Z"
        report.kernel = "6.12.57-amd64"
        report.hostName = "annas-laptop"
        report.adapter.name = "hci0"
        report.adapter.address = BluetoothAddress(rawValue: 0x001A_7DDA_7113)
        report.environment.openers = ["annas-scanner", "bluetoothd"]
        report.kernelLog = [#"Bluetooth: hci0: link to 00:1A:7D:DA:71:13 "Anna's belt" failed: -110"#]
        change(&report)
        return report
    }

    private static func result(_ check: SelfTestCheck, _ judgement: SelfTestJudgement) -> SelfTestResult {
        SelfTestResult(
            check: check, judgement: judgement, time: .milliseconds(1500),
            statuses: [SelfTestStatuses(opcode: 0x200C, statuses: [0, nil])])
    }

    @Test func theVerdictIsThatOfTheWorstCheck() {
        let fit = SelfTestJudgement(.fit, "all is well")
        var remarked = fit
        remarked.remark("slow")
        var bad = fit
        bad.remark("deaf", verdict: .unfit)
        func status(_ judgements: (SelfTestCheck, SelfTestJudgement)...) -> Int32 {
            Self.report { $0.results = judgements.map { Self.result($0.0, $0.1) } }.status
        }
        #expect(status((.identity, fit)) == 0)
        #expect(status((.identity, fit), (.responses, remarked)) == 1)
        #expect(status((.identity, bad), (.responses, remarked)) == 2)
        // A check of the adapter alone that did not run leaves a doubt; one without its peer does not.
        #expect(status((.passiveScan, .notRun("scanning does not work"))) == 1)
        #expect(status((.connects, .notRun("needs --peer-adapter or --peer"))) == 0)
        #expect(
            Self.report {
                $0.end = "the adapter disappeared"; $0.endIsFailure = true
            }.status == 2)
    }

    @Test func theReportIsOneObject() throws {
        let text = Self.report { report in
            var judgement = SelfTestJudgement(.fit, "text", values: ["reports": 3, "none": nil])
            judgement.remark("strange", "W18")
            report.results = [Self.result(.passiveScan, judgement)]
        }.json(redacted: false).text
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect(
            Set(object.keys) == [
                "schema", "tool", "date", "kernel", "distribution", "board", "adapter", "environment", "capabilities",
                "kernelChoice", "checks", "kernelLogDuring", "quirks", "limits", "verdict", "remarks",
            ])
        #expect(object["verdict"] as? String == "fit-with-remarks")
        let check = try #require((object["checks"] as? [[String: Any]])?.first)
        #expect(check["id"] as? String == "S07" && check["verdict"] as? String == "remark")
        #expect(check["seconds"] as? Double == 1.5)
        #expect((check["values"] as? [String: Any])?["reports"] as? Int == 3)
        #expect(text.contains(#""statuses":{"0x200c":[0,null]}"#))
        #expect(text.contains(#"{"id":"W18","confidence":"observed","workaround":"#))
    }

    /// A row that only the self-test can see is not one that the doctor names.
    @Test func everyRowOfACheckHasAdviceOfItsOwn() throws {
        let folder = "blescan/SelfTest/"
        let checks = try RepositoryFiles.sources(of: ["blescan"]).filter { source in
            source.path.hasPrefix(folder) && source.path != folder + "SelfTestQuirk.swift"
        }
        let rows = Set(checks.flatMap { check in check.text.matches(of: /"(W\d\d)"/).map { String($0.output.1) } })
        #expect(rows.isSuperset(of: ["W01", "W23", "W46"]))
        let unknown = SelfTestQuirk("W00").workaround
        for row in rows.sorted() { #expect(SelfTestQuirk(row).workaround != unknown, "\(row)") }
    }

    @Test func aRedactedReportContainsNoNamesOrAddresses() {
        let report = Self.report { report in
            var judgement = SelfTestJudgement(.fit, "address 00:1A:7D:DA:71:13")
            judgement.remark("another adapter has 00:1A:7D:DA:71:13")
            report.results = [Self.result(.identity, judgement)]
        }
        let open = report.json(redacted: false).text
        let redacted = report.json(redacted: true).text
        for secret in ["00:1A:7D:DA:71:13", "annas-scanner", "Anna's belt"] {
            #expect(open.contains(secret) && !redacted.contains(secret))
        }
        #expect(redacted.contains("bluetoothd") && !redacted.contains("annas"))
    }

    @Test(arguments: [40, 80, 120]) func theScreenFits(_ width: Int) throws {
        var remarked = SelfTestJudgement(
            .fit, "off, parameters, on, on, off, off: 0c, 00, 00, 0c, 00, 0c (legacy)")
        remarked.remark("it lists the extended scan and refuses it; the legacy commands are used", "W04")
        let report = Self.report { report in
            report.results = [
                Self.result(.identity, SelfTestJudgement(.fit, "usb 8087:0029, Intel Corp., Bluetooth 5.2")),
                Self.result(.scanSwitch, remarked), Self.result(.connects, .notRun("needs --peer-adapter or --peer")),
            ]
        }
        let screen = SelfTestScreen(width: width)
        let lines = report.results.flatMap { screen.lines(of: $0) } + screen.lines(of: report)
        for line in lines { #expect(line.count <= width, "\(line)") }
        try Golden.expect(lines.map { $0 + "\n" }.joined(), matches: "selftest-\(width).txt")
    }

    @Test func theScreenFitsWithoutUnicode() {
        var judgement = SelfTestJudgement(.fit, "on, off")
        judgement.remark("it reports nothing after a restart", "W32")
        let report = Self.report { $0.results = [Self.result(.scanSwitch, judgement)] }
        for width in 40...100 as ClosedRange<Int> {
            let lines = SelfTestScreen(width: width, isUnicode: false).lines(of: report)
            #expect(lines.count > 2 && lines.allSatisfy { $0.ascii.count <= width }, "\(lines)")
        }
    }

    @Test func theVerdictIsInColour() throws {
        var judgement = SelfTestJudgement(.fit, "on, off")
        judgement.remark("it refuses the extended scan", "W04")
        let report = Self.report { $0.results = [Self.result(.scanSwitch, judgement)] }
        let screen = SelfTestScreen(width: 80)
        let check = try #require(screen.lines(of: report.results[0]).first)
        let verdict = try #require(screen.lines(of: report).first)
        let styled = screen.styled(checkLine: check, .remark)
        #expect(styled.plain == check && styled.painted(ScreenLook(.always)).contains("\u{1B}[33mremark\u{1B}[0m"))
        let whole = screen.styled(reportLine: verdict, report.verdict)
        #expect(whole.plain == verdict)
        #expect(whole.painted(ScreenLook(.always)).hasSuffix(": \u{1B}[33mfit with 1 remark\u{1B}[0m"), "\(verdict)")
    }

    @Test func whatOthersHaveNamedCannotControlTheTerminal() {
        let result = Self.result(.identity, SelfTestJudgement(.fit, "usb \u{1B}[2J"))
        for width in [nil, 40, 120] {
            let lines = SelfTestScreen(width: width).lines(of: result)
            #expect(lines.allSatisfy { !$0.contains("\u{1B}") })
        }
        // A virtual adapter may be the file of a stranger.
        let verdict = SelfTestScreen(width: nil).lines(of: Self.report { _ in }, named: "demo:\u{1B}[2J.json").first
        #expect(verdict?.hasPrefix("demo:\\u{1b}[2J.json: ") == true)
    }

    @Test func percentilesAreThoseOfAllTimes() {
        let times = SelfTestTimes((1...20).map { .milliseconds($0) })
        #expect(
            times.median == .milliseconds(10) && times.p95 == .milliseconds(19) && times.maximum == .milliseconds(20))
        #expect(SelfTestTimes([]).median == nil)
    }
}

import Foundation
import Glibc
import Testing

/// Lines of recorded scans through a real broker, as Docs/users/fleets.md describes it.
@Suite(
    .enabled(if: Broker.available(for: "BrokerTests")), .timeLimit(.minutes(10))
) struct BrokerTests {
    private static let shell = URL(filePath: "/bin/sh")

    /// 100 advertisements each of three devices, each with a different number.
    private func capture(_ folder: TestFolder) throws -> String {
        var capture = AirCapture()
        for number in 0..<100 {
            for device in 1...3 {
                let digits = String(format: "%02x", number)
                capture.add(
                    "020106" + "05ffffff01" + digits, from: "A4:C1:38:00:00:0\(device)", rssi: Int8(-40 - device))
            }
        }
        try capture.write(to: folder["air.btsnoop"])
        return folder["air.btsnoop"]
    }

    private static let publish = """
        mosquitto_pub -h 127.0.0.1 -p "$3" -q 1 -l -t "site/7/ble/$2" \
        --will-topic "site/7/ble/$2/state" --will-payload gone --will-retain
        """

    @Test func twoScannersReachOneBroker() async throws {
        let (broker, folder) = (try await Broker(), try TestFolder())
        let capture = try capture(folder)
        let brain = try await broker.subscriber("site/#")
        let names = ["attic", "cellar"]
        let scanners = try names.map { name in
            try RunningProgram(
                [
                    "-c", #""$0" replay "$1" --as-scan --json --scanner-id "$2" | "# + Self.publish,
                    BuiltProgram.url.path, capture, name, "\(broker.port)",
                ], of: Self.shell)
        }
        for scanner in scanners { #expect(try await scanner.outcome().status == 0) }
        for name in names { try await brain.printed(#""scanner":"\#(name)","adapter":"hci0","seq":300,"#) }
        brain.signal(SIGKILL)
        let messages = Broker.messages(try await brain.outcome().output)
        for name in names {
            let lines = messages.filter { $0.topic == "site/7/ble/\(name)" }
            let objects = try lines.compactMap {
                try JSONSerialization.jsonObject(with: Data($0.payload.utf8)) as? [String: Any]
            }
            #expect(objects.compactMap { $0["seq"] as? Int } == Array(1...300))
            #expect(objects.allSatisfy { $0["scanner"] as? String == name && $0["dropped"] as? Int == 0 })
            let times = objects.compactMap { $0["t"] as? String }
            #expect(times == times.sorted() && Set(times).count == 300)
        }
        // A regular end is not reported as a death.
        #expect(!messages.contains { $0.topic.hasSuffix("/state") })
        #expect(messages.count == 600)
    }

    /// One end of the pipe dies: without the publisher the broker sends the will; without the scanner the command after
    /// the pipe publishes its message.
    @Test(arguments: ["feeder", "publisher"]) func theDeathOfAScannerIsReported(_ dead: String) async throws {
        let (broker, folder) = (try await Broker(), try TestFolder())
        let capture = try capture(folder)
        let brain = try await broker.subscriber("site/7/ble/+/state", "site/7/ble/+")
        // It continues as a scan does, and stores its process number.
        let script = """
            "$0" replay "$1" --as-scan --json --scanner-id "$2" >"$4/lines"
            { cat "$4/lines"; exec sh -c 'echo $$ >"$0/feeder"; exec tail -f /dev/null' "$4"; } |
            sh -c 'echo $$ >"$4/publisher"; exec \(Self.publish)' "$0" "$1" "$2" "$3" "$4"
            mosquitto_pub -h 127.0.0.1 -p "$3" -q 1 -r -t "site/7/ble/$2/state" -m gone
            """
        let scanner = try RunningProgram(
            ["-c", script, BuiltProgram.url.path, capture, "attic", "\(broker.port)", folder.path], of: Self.shell)
        try await brain.printed(#""seq":300,"#)
        kill(try await process(folder[dead]), SIGKILL)
        try await brain.printed("site/7/ble/attic/state 0 gone")
        // A later subscriber receives it too.
        let late = try await broker.subscriber("site/7/ble/+/state", more: ["-C", "2"])
        let told = Broker.messages(try await late.outcome().output)
        #expect(told.map(\.topic) == ["site/7/ble/attic/state"])
        #expect(told.first?.isRetained == true && told.first?.payload == "gone")
        if dead != "feeder" { kill(try await process(folder["feeder"]), SIGTERM) }
        _ = try await scanner.outcome()
        brain.signal(SIGKILL)
        _ = try await brain.outcome()
    }

    /// Returns the process whose number is in a file, when it is there: the lines may be received before that.
    private func process(_ path: String) async throws -> pid_t {
        var number: pid_t?
        try await waited(for: "the process number") {
            let text = try? String(contentsOfFile: path, encoding: .utf8)
            number = text.flatMap { $0.hasSuffix("\n") ? pid_t($0.dropLast()) : nil }
            return number != nil
        }
        return try #require(number)
    }
}

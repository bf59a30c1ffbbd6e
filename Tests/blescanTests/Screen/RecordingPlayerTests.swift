import BLECore
import BLELinux
import Dispatch
import Foundation
import TestSupport
import Testing

@testable import blescan

/// A recording in the live table, with a clock that stands still: only the keys of the user move it.
@Suite struct RecordingPlayerTests {
    private static let recording = RepositoryFiles.root.appending(path: "Fixtures/hci/three-devices.btsnoop").path

    /// The screen, and the reader that changes it in a thread of its own.
    private final class Playing: Sendable {
        private let screen: Lock<ScanBrowser>
        private let pace = ReplayPace(1) { BootInstant.zero }

        init(_ path: String, columns: Int = 80, onlySensors: Bool = false) {
            let blank = RecordingPlayerTests.blank(columns: columns, onlySensors: onlySensors)
            screen = Lock(blank)
            DispatchQueue(label: "player").async { [screen, pace] in
                let player = RecordingPlayer(path, redacts: false, pace, blank: blank) { change in
                    screen.withLock { change(&$0) }
                }
                try? player.run()
            }
        }

        deinit { pace.stop() }

        func press(_ keys: ScreenKey...) {
            for key in keys {
                let now = pace.now()
                let action = screen.withLock { $0.press(key, at: now) }
                if case .seek(let step) = action { pace.seek(by: step) }
            }
        }

        func lines() -> [String] {
            let now = pace.now()
            return screen.withLock { $0.frame(at: now) }.map(\.text)
        }

        /// Waits until a line contains this text, and returns the lines.
        @discardableResult
        func shows(_ text: String) async throws -> [String] {
            try await waited(for: text) { lines().contains { $0.contains(text) } }
            return lines()
        }
    }

    private static func blank(columns: Int = 80, onlySensors: Bool = false) -> ScanBrowser {
        let look = ScreenLook(isColoured: false, isUnicode: true)
        let table = ScanScreen(
            .init(source: "three-devices.btsnoop", address: nil, mode: "recording"), look, onlySensors: onlySensors,
            columns: columns, rows: 8)
        return ScanBrowser(table, .recorded)
    }

    private static let beginning = "  recording at 0:00  1 device  "
    private static let end = "  end of the recording at 0:02  3 devices  "

    @Test func theKeysMoveInTheRecording() async throws {
        let playing = Playing(Self.recording)
        let first = try await playing.shows(Self.beginning)
        #expect(first.contains { $0.contains("00:AA:02:00:00:0B") })
        playing.press(.character("]"))
        let last = try await playing.shows(Self.end)
        #expect(last.contains { $0.contains("Virtual H…") })
        playing.press(.character("["))
        #expect(try await playing.shows(Self.beginning) == first)
        playing.press(.character("}"))
        #expect(try await playing.shows(Self.end) == last)
        playing.press(.character("]"))
        #expect(playing.lines() == last)
    }

    /// Going back changes what has been heard, and nothing that the user has chosen.
    @Test func theOrderAndTheOpenDeviceStay() async throws {
        let playing = Playing(Self.recording)
        try await playing.shows(Self.beginning)
        playing.press(.character("]"))
        try await playing.shows(Self.end)
        playing.press(.character("s"), .down, .enter)
        #expect(playing.lines()[0].hasPrefix("00:AA:02:00:00:0B"))
        playing.press(.character("{"))
        let page = try await playing.shows("packets   1, the first now, the last now")
        #expect(page[0].hasPrefix("00:AA:02:00:00:0B"))
        playing.press(.escape)
        #expect(playing.lines()[1].contains("NAME↓"))
        // Of a device that had not been heard yet there is no page.
        playing.press(.character("]"))
        try await playing.shows(Self.end)
        playing.press(.end, .up, .enter)
        #expect(playing.lines()[0].contains("Virtual HRM"))
        playing.press(.character("["))
        try await playing.shows(Self.beginning)
    }

    /// The peers of these links are not known: the recording begins after their connections.
    @Test func linksWithoutAdvertisementsAreListed() async throws {
        let folder = try TestFolder()
        var air = AirCapture()
        for handle: UInt8 in 0x40...0x42 { air.send("0a0300", on: handle) }
        try air.write(to: folder["links.btsnoop"])
        let playing = Playing(folder["links.btsnoop"])
        try await playing.shows("link 1  recorded at 0:00")
        playing.press(.character("]"), .escape)
        let list = try await playing.shows("3 links  end of the recording at 0:00")
        #expect(list[2].hasPrefix(">1 ") && list[4].hasPrefix(" 3 "), "\(list)")
        playing.press(.end, .enter)
        try await playing.shows("link 3  recorded at 0:00")
        playing.press(.character("["))
        let earlier = try await playing.shows("this link begins later in the recording")
        #expect(earlier[0].hasPrefix("1 link  "), "\(earlier)")
        withExtendedLifetime(folder) {}
    }

    /// What follows may be a long transfer.
    @Test(arguments: [(true, 4), (false, 5)])
    func keysAreNoticedAfterTheLastAdvertisement(_ quits: Bool, _ count: Int) throws {
        let folder = try TestFolder()
        var air = AirCapture()
        for _ in 0..<2 { air.add("020106", from: "C0:00:00:00:00:01", isRandom: true) }
        for _ in 0..<3 { air.send("0a0300") }
        try air.write(to: folder["air.btsnoop"])
        let pace = ReplayPace(1) { BootInstant.zero }
        let blank = Self.blank()
        var (screen, changes) = (blank, 0)
        // The beginning, two reports, and packets of the link; then what is shown after the seek back.
        let player = RecordingPlayer(folder["air.btsnoop"], redacts: false, pace, blank: blank) { change in
            change(&screen)
            changes += 1
            switch changes {
            case 2: pace.seek(by: .seconds(1))
            case 4 where !quits: pace.seek(by: .seconds(-10))
            case 4...: pace.stop()
            default: break
            }
        }
        try player.run()
        #expect(changes == count)
    }

    /// Their packets cannot be masked.
    @Test func linksAreNotShownMasked() throws {
        let folder = try TestFolder()
        var air = AirCapture()
        air.send("0a0300")
        try air.write(to: folder["link.btsnoop"])
        for path in [folder["link.btsnoop"], Fixtures.folder.appending(path: "att/gar-cl-bv-05-c.dialogue").path] {
            let pace = ReplayPace(1) { BootInstant.zero }
            var changes = 0
            let player = RecordingPlayer(path, redacts: true, pace, blank: Self.blank()) { _ in
                changes += 1
                pace.stop()
            }
            let failure = #expect(throws: Failure.self) { try player.run() }
            #expect(failure?.message.hasSuffix("--redact shows no links") == true)
            #expect(changes == 0)
        }
    }

    @Test(arguments: [(false, "2 devices"), (true, "1 device")])
    func onlyMeasurementsAreShownOnRequest(_ onlySensors: Bool, _ count: String) async throws {
        let folder = try TestFolder()
        var air = AirCapture()
        air.add("020106", from: "C0:00:00:00:00:01", isRandom: true)
        air.add("12161a1884535638c1a4a00a7412730b47060e", from: "A4:C1:38:56:53:84")
        try air.write(to: folder["air.btsnoop"])
        let playing = Playing(folder["air.btsnoop"], onlySensors: onlySensors)
        try await playing.shows(onlySensors ? "recording of sensors at 0:00" : "recording at 0:00")
        playing.press(.character("]"))
        let lines = try await playing.shows("end of the recording")
        #expect(lines[0].contains("  \(count)  "), "\(lines[0])")
        #expect(lines.contains { $0.contains("°C") })
        #expect(lines.contains { $0.contains("C0:00:00:00:00:01") } != onlySensors)
        #expect(!lines.contains { $0.contains("no device with measurements") })
        withExtendedLifetime(folder) {}
    }

    /// Nothing else would show that devices are heard.
    @Test func aRecordingWithoutSensorsIsNoSilence() async throws {
        let playing = Playing(Self.recording, onlySensors: true)
        try await playing.shows("recording of sensors at 0:00  0 devices")
        playing.press(.character("]"))
        let lines = try await playing.shows("end of the recording")
        #expect(lines[0].contains("  0 devices  "), "\(lines[0])")
        #expect(lines[2].hasPrefix("no device with measurements is heard at this time; others are not shown"))
    }

    @Test func aFrozenTableMovesOn() async throws {
        let playing = Playing(Self.recording)
        try await playing.shows(Self.beginning)
        playing.press(.character(" "))
        try await playing.shows("FROZEN at 0:00  1 device")
        playing.press(.character("]"))
        try await playing.shows(Self.end)
    }
}

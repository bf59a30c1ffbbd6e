import BLECore
import BareBLETestKit
import Logging
import Synchronization
import Testing

@testable import BareBLE

/// What should not happen is counted for the program and told in the log, and a peer cannot fill the log.
@Suite(.timeLimit(.minutes(1))) struct TroubleTests {
    /// Keeps the warnings.
    private final class Warnings: Sendable {
        private let lines = Mutex<[String]>([])
        var all: [String] { lines.withLock { $0 } }

        var logger: Logger {
            Logger(label: "test") { _ in Handler(warnings: self) }
        }

        fileprivate func take(_ line: String) { lines.withLock { $0.append(line) } }
    }

    private struct Handler: LogHandler {
        let warnings: Warnings
        var metadata: Logger.Metadata = [:]
        var logLevel: Logger.Level = .warning

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            warnings.take("\(event.message): \(event.metadata?["so far"].map { "\($0)" } ?? "")")
        }
    }

    private static let device = VirtualDevice(
        name: "Sender",
        services: [VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.notify, .read], value: [9])])])

    @Test func aPeerThatDoesWrongAllTheTimeCostsALineAMinute() async throws {
        let warnings = Warnings()
        try await VirtualTime.run { time in
            var configuration = Configuration()
            configuration.logger = warnings.logger
            let radio = VirtualRadio(time: time)
            let peripheral = await radio.add(Self.device)
            let central = Central(configuration, radio: radio)
            let (peer, _) = try await central.connect(toFirst: .any)
            for _ in 0..<180 {
                for _ in 0..<20 { await peripheral.send(raw: [0x1B, 0, 0, 1]) }
                try await time.clock.sleep(for: .seconds(1))
            }
            #expect(try await peer.read(0xFFF1) == [9])
            #expect(await peer.statistics.valuesWithoutHandle == 3_600)
            await peer.disconnect()
        }
        #expect(warnings.all.count == 4)
        #expect(warnings.all.first?.hasPrefix("trouble on the link: ") ?? false)
        #expect(warnings.all.last == "trouble on the link: values for handle 0: 3600")
    }

    @Test func aPeerThatBehavesIsNotTalkedOf() async throws {
        let warnings = Warnings()
        try await VirtualTime.run { time in
            var configuration = Configuration()
            configuration.logger = warnings.logger
            let radio = VirtualRadio(time: time)
            let peripheral = await radio.add(Self.device)
            let central = Central(configuration, radio: radio)
            let (peer, _) = try await central.connect(toFirst: .any)
            let handle = try await peer.discover().characteristics.first { $0.uuid == 0xFFF1 }?.valueHandle ?? 0
            // Under way when a subscription ends, as far as the log is concerned.
            await peripheral.send(raw: [0x1B, UInt8(truncatingIfNeeded: handle), 0, 1])
            #expect(try await peer.read(0xFFF1) == [9])
            #expect(await peer.statistics.unwantedValues == 1)
            await peer.disconnect()
            #expect(await central.statistics.reports > 0)
        }
        #expect(warnings.all == [])
    }

    @Test func whatBuffersDropIsCountedForTheLinkAndForTheAdapter() async throws {
        try await VirtualTime.run { time in
            let radio = VirtualRadio(time: time)
            let peripheral = await radio.add(Self.device)
            let central = Central(radio: radio)
            var scan = central.scan(.any, .balanced.duplicates(.all), capacity: 2).makeAsyncIterator()
            #expect(try await scan.next() != nil)
            try await time.clock.sleep(for: .seconds(20))
            #expect(await central.statistics.droppedEvents > 2)
            await scan.stop()
            let (peer, _) = try await central.connect(toFirst: .any)
            let values = try await peer.subscribe(to: 0xFFF1, SubscribeOptions(capacity: 3))
            let handle = UInt8(truncatingIfNeeded: values.handle)
            for number in 0..<10 { await peripheral.send(raw: [0x1B, handle, 0, UInt8(number)]) }
            #expect(try await peer.read(0xFFF1) == [9])
            #expect(await peer.statistics.droppedValues == 7)
            #expect(values.droppedInTotal == 7)
            await peer.disconnect()
            #expect(await peer.statistics.droppedValues == 7)
        }
    }

    @Test func whatHappensToTheAdapterIsCounted() async throws {
        let warnings = Warnings()
        try await VirtualTime.run { time in
            var configuration = Configuration()
            configuration.logger = warnings.logger
            let radio = VirtualRadio(time: time)
            let central = Central(configuration, radio: radio)
            let scan = central.scan(.any, .balanced)
            let listening = time.task { for try await _ in scan {} }
            // Nobody is there: silence for 90 s is a stall.
            try await time.clock.sleep(for: .seconds(100))
            #expect(await central.statistics.stalls == 1)
            await radio.powerOff()
            try await time.clock.sleep(for: .seconds(5))
            #expect(await central.statistics.losses == 1)
            listening.cancel()
            try await listening.value
        }
        #expect(warnings.all == ["trouble with the adapter: silent scans begun again: 1"])
    }
}

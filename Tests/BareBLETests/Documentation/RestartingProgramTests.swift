import BLELinux
import BareBLE
import BareBLETestKit
import Testing

/// The whole program in Restarting.md, with a belt on a virtual radio.
private struct RestartingProgram: Sendable {
    struct Arguments {
        let arguments: [String]
    }

    let bench: RestorationBench
    let address: String
    let printed = Lock<[String]>([])
    let statuses = Lock<[Int32]>([])

    // What the program uses of its surroundings.

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private func Central(store: StateStore) -> BareBLE.Central { bench.fresh() }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private var CommandLine: Arguments { Arguments(arguments: ["program", address]) }

    private func print(_ items: Any...) {
        let line = items.map { "\($0)" }.joined(separator: " ")
        printed.withLock { $0.append(line) }
    }

    private func exit(_ status: Int32) {
        statuses.withLock { $0.append(status) }
    }

    func run() async {
        // in: Sources/BareBLE/BareBLE.docc/Restarting.md
        do {
            let central = Central(store: StateStore(directory: "/var/lib/belt", identifier: "belt"))
            try await central.ready(powerOn: true)
            let belt = try await central.restore().peers.first
            let session: Session
            if let restored = belt?.session {
                session = restored
            } else {
                session = try await central.session(with: CommandLine.arguments[1])
            }
            let beats: SessionValueSequence<HeartRateMeasurement>
            if let subscription = belt?.subscriptions.first(where: { $0.characteristic == 0x2A37 }) {
                beats = subscription.adopt(as: HeartRateMeasurement.self, malformedValues: .skip)
            } else {
                // A first start, or the last run ended before it had subscribed.
                beats = await session.subscribe(to: .heartRateMeasurement, SubscribeOptions(malformedValues: .skip))
            }
            for try await element in beats {
                if case .value(let beat) = element { print(beat.beatsPerMinute) }
            }
        } catch {
            print(error)
            exit(1)
        }
        // out
    }
}

@Suite(.timeLimit(.minutes(5))) struct RestartingProgramTests {
    /// Runs the program until it has printed three lines, and ends it as a cancelled task does.
    private func output(of program: RestartingProgram, _ time: VirtualTime) async throws -> [String] {
        let run = time.task { await program.run() }
        // It exits where something has failed.
        while program.printed.withLock({ $0.count }) < 3, program.statuses.withLock({ $0.isEmpty }) {
            try await time.clock.sleep(for: .milliseconds(100))
        }
        run.cancel()
        try await run.value
        while !program.bench.isFree { try await time.clock.sleep(for: .milliseconds(10)) }
        // The belt notices the end of the link.
        try await time.clock.sleep(for: .seconds(5))
        return program.printed.withLock { $0 }
    }

    @Test func theProgramBeginsWithAnAddressAndResumesWithoutOne() async throws {
        try await VirtualTime.run { time in
            let bench = try RestorationBench(time)
            let (_, peer) = try await bench.add(.heartRate)
            let first = RestartingProgram(bench: bench, address: "\(peer)")
            let second = RestartingProgram(bench: bench, address: "no address")
            for program in [first, second] {
                let lines = try await output(of: program, time)
                #expect(lines.allSatisfy { Int($0) != nil }, "\(lines)")
                #expect(program.statuses.withLock { $0.isEmpty })
                let state = try bench.stored()
                #expect(state.peers.map(\.peer) == [peer])
                #expect(state.peers.first?.subscriptions.map(\.uuid) == [0x2A37])
            }
        }
    }
}

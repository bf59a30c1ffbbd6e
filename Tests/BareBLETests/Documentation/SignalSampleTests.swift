import BLELinux
import BareBLE
import BareBLETestKit
import Dispatch
import Glibc
import Testing

/// The signal that stands for that of the service manager: one that ends no process without a handler, such as this one.
// swift-format-ignore: AlwaysUseLowerCamelCase
private let SIGTERM = SIGURG

/// The end of a daemon by a signal, in GettingStarted.md.
private struct EndingProgram: Sendable {
    let printed = Lock<[String]>([])
    let statuses = Lock<[Int32]>([])
    let logBeats: @Sendable () async throws -> Void

    private func print(_ item: any Error) {
        printed.withLock { $0.append("\(item)") }
    }

    private func exit(_ status: Int32) {
        statuses.withLock { $0.append(status) }
    }

    @MainActor func run() async {
        // in: Sources/BareBLE/BareBLE.docc/GettingStarted.md
        let work = Task { try await logBeats() }  // what the daemon does
        let termination = DispatchSource.makeSignalSource(signal: SIGTERM, queue: .main)
        termination.setEventHandler { work.cancel() }
        termination.resume()
        do {
            try await work.value
        } catch let error as BLEError where error.code == .cancelled {
            // The service manager has ended it.
        } catch {
            print(error)
            exit(1)
        }
        // out
        termination.cancel()
    }
}

@Suite(.timeLimit(.minutes(5))) struct SignalSampleTests {
    @Test func theSignalEndsTheProgramInOrder() async throws {
        let central = Central()
        let device = try await central.attach(descriptor: VirtualPeripheral(.heartRate).connect())
        let isOver = Lock(false)
        let program = EndingProgram {
            defer { isOver.withLock { $0 = true } }
            for try await _ in try await device.subscribe(to: 0x2A37) {}
            throw BLEError(.cancelled, during: "log the beats", because: "the task was cancelled")
        }
        async let run: Void = program.run()
        // A signal that comes before the source is registered has no effect.
        while !isOver.withLock({ $0 }) {
            kill(getpid(), SIGTERM)
            try await Task.sleep(for: .milliseconds(10))
        }
        await run
        #expect(program.printed.withLock { $0 }.isEmpty)
        #expect(program.statuses.withLock { $0 }.isEmpty)
        await device.disconnect()
    }
}

import BareBLE
import Glibc

/// Serves one stored value of 22 bytes at a descriptor, through the public interface, until the link ends.
///
/// The first line of output is the handle of the value.
enum ServerBenchmark {
    static func run(descriptor: Int32) async {
        do {
            let local = LocalPeripheral(.init(name: "Benchmark"), on: Central())
            let service = try await local.publish(
                LocalService(
                    0x180F,
                    [LocalCharacteristic(0x2A19, [.read, .notify], value: .stored((1...22).map { UInt8($0) }))]))
            var events = local.events.makeAsyncIterator()
            try await local.attach(descriptor: descriptor)
            answer("\(service.characteristics[0].id)")
            while let event = try await events.next() {
                if case .disconnected = event { return }
            }
        } catch {
            print("error: \(error)")
            exit(1)
        }
    }
}

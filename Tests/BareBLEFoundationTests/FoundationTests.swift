import BLECore
import BareBLE
import BareBLEFoundation
import BareBLETestKit
import Foundation
import Testing

/// The behaviour for code that uses Foundation.
@Suite(.timeLimit(.minutes(10))) struct FoundationTests {
    @Test func anErrorDescribesItself() throws {
        let error: any Error = BLEError(
            .refusedByPeer, subject: "C0:00:00:00:00:01/random", during: "read 2a19",
            because: "refused: read not permitted",
            hint: "The value cannot be read.", attError: .readNotPermitted)
        #expect(
            error.localizedDescription
                == "Could not read 2a19 (C0:00:00:00:00:01/random): refused: read not permitted. [ATT 0x02]")
        let localized = try #require(error as? any LocalizedError)
        #expect(localized.failureReason == "Refused: read not permitted.")
        #expect(localized.recoverySuggestion == "The value cannot be read.")
        #expect(BLEError(.cancelled, during: "scan", because: "the task was cancelled").recoverySuggestion == nil)
    }

    @Test func dataIsAValue() async throws {
        let key = CharacteristicKey<Data>(0xFFF1)
        let settings = VirtualDevice(
            name: "Settings",
            services: [
                VirtualService(0xFFF0, [VirtualCharacteristic(0xFFF1, [.read, .write, .notify], value: [1, 2])])
            ])
        let peripheral = VirtualPeripheral(settings)
        let device = try await Central().attach(descriptor: peripheral.connect())
        #expect(try await device.read(key) == Data([1, 2]))
        try await device.write(Data([3, 4, 5]), to: key)
        #expect(try await device.read(0xFFF1) == [3, 4, 5])
        try await device.write(Data(), to: 0xFFF1)
        #expect(try await device.read(key).isEmpty)
        let values = try await device.subscribe(to: key)
        try await peripheral.notify(0xFFF1, [6])
        var iterator = values.makeAsyncIterator()
        #expect(try await iterator.next() == Data([6]))
        #expect(iterator.last?.data == Data([6]))
        await device.disconnect()
    }

    /// A part of a larger one has indices that do not begin with 0.
    @Test func aSliceIsWrittenWithItsOwnBytes() {
        let data = Data([0, 1, 2, 3]).dropFirst(2)
        #expect(data.valueBytes == [2, 3])
    }
}

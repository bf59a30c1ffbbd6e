import BLECore
import BLELinux
import BareBLE
import BareBLETestKit
import Glibc
import Testing

/// A link over a socketpair. The end under test is on an event loop of its own, all of whose system calls belong to a
/// plan; the peer's do not.
final class FaultyLink: Sendable {
    static let valueUUID: BluetoothUUID = 0x2A19
    static let writableUUID: BluetoothUUID = 0x2A39
    static let value = CharacteristicReference.uuid(valueUUID)
    static let writable = CharacteristicReference.uuid(writableUUID)

    static let device = VirtualDevice(
        name: "Faulty",
        services: [
            .genericAccess(name: "Faulty", appearance: 0),
            VirtualService(
                0x180F,
                [
                    VirtualCharacteristic(valueUUID, [.read, .notify], value: [64]),
                    VirtualCharacteristic(writableUUID, [.write, .writeWithoutResponse]),
                ]),
        ])

    let plan: FaultPlan
    let loop: EventLoop
    let peripheral = VirtualPeripheral(FaultyLink.device)
    let descriptor: Int32
    let device: Peripheral
    /// The loop's own descriptors, which stay to the end.
    private let openBefore: Int

    init(responseTime: Duration = .seconds(30)) async throws {
        let plan = try FaultPlan()
        self.plan = plan
        loop = plan.joined { EventLoop() }
        openBefore = plan.openCount
        loop.start()
        await plan.join(loop)
        descriptor = try await peripheral.connect()
        plan.take(descriptor)
        device = try await Self.central(loop, responseTime).attach(descriptor: descriptor, name: "faulty")
        // The link's own requests are over.
        _ = try await device.read(Self.value)
    }

    static func central(_ loop: EventLoop, _ responseTime: Duration = .seconds(30)) -> Central {
        var configuration = Configuration()
        configuration.responseTime = responseTime
        return Central(configuration, loop: loop)
    }

    /// Ends the link, and checks for leftovers.
    func end() async {
        await device.disconnect()
        await checkEnded()
    }

    /// After the end of the link: no descriptor, no timer, no watch.
    func checkEnded() async {
        plan.clear()
        #expect(await !device.isConnected)
        #expect(plan.openCount == openBefore)
        await plan.leave(loop)
        await peripheral.disconnect()
        await loop.end()
        #expect(loop.watchedCount == 0)
    }

    /// That the link is usable.
    func checkUsable() async throws {
        #expect(await device.isConnected)
        #expect(try await device.read(Self.value, timeout: .seconds(5)).count == 1)
    }

    /// Waits until the condition holds.
    static func until(_ condition: () async -> Bool) async {
        while await !condition(), !Task.isCancelled { await Task.yield() }
    }
}

/// The result of a call: nothing, or its error.
func failure(_ body: () async throws(BLEError) -> Void) async -> BLEError? {
    do throws(BLEError) {
        try await body()
        return nil
    } catch {
        return error
    }
}

/// Expects an error of this kind, with the kernel's number and advice.
func expectHint(
    _ error: BLEError?, _ code: BLEError.Code, _ errno: Int32?, sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(error?.code == code, "\(String(describing: error))", sourceLocation: sourceLocation)
    #expect(error?.errorNumber == errno, sourceLocation: sourceLocation)
    #expect(error?.hint != nil, sourceLocation: sourceLocation)
}

public import BLEProfiles
public import BareBLE
public import ServiceLifecycle

/// A heart-rate sensor: sends a measurement each second to the centrals that have subscribed, and the level of its
/// battery when that has changed.
///
/// Spec: Heart Rate Service 1.0, Battery Service 1.1.
public struct HeartRateSensor: Service, CustomStringConvertible {
    /// What it advertises.
    public static let advertisement: Advertisement = [
        .flags([.generalDiscoverable, .classicNotSupported]), .services([0x180D]), .localName("Heart Rate Sensor"),
    ]

    private let peripheral: LocalPeripheral
    private let heart: SimulatedHeart
    private let clock: CentralClock

    /// Creates a sensor of this peripheral, and publishes its services; `clock` is the central's.
    ///
    /// - Throws: `BLEError` with the errors of `LocalPeripheral.publish(_:)`.
    public init(
        _ peripheral: LocalPeripheral, of heart: SimulatedHeart, clock: CentralClock
    ) async throws(BLEError) {
        self.peripheral = peripheral
        self.heart = heart
        self.clock = clock
        try await peripheral.publish(
            LocalService(
                0x180D,
                [
                    LocalCharacteristic(.heartRateMeasurement, .notify),
                    LocalCharacteristic(.bodySensorLocation, .read, value: .fixed(BodySensorLocation.chest)),
                    LocalCharacteristic(
                        .heartRateControlPoint, .write,
                        value: .handled(write: { request in
                            guard request.value == HeartRateControlPoint.resetEnergyExpended.valueBytes else {
                                // "Control Point Not Supported" of the service.
                                throw ATTRefusal(ATTErrorCode(rawValue: 0x80))
                            }
                            await heart.resetEnergyExpended()
                        })),
                ]))
        try await peripheral.publish(
            LocalService(
                0x180F,
                [LocalCharacteristic(.batteryLevel, [.read, .notify], value: .stored(await heart.battery.valueBytes))]))
    }

    /// The service's name in the log.
    public var description: String { "heart-rate sensor" }

    /// Sends values until the daemon is stopped; then the links end.
    ///
    /// - Throws: `BLEError` with the errors of `LocalPeripheral.update`.
    public func run() async throws {
        do {
            try await cancelWhenGracefulShutdown { try await sendValues() }
        } catch {
            await peripheral.stop()
            throw error
        }
        await peripheral.stop()
    }

    private func sendValues() async throws {
        var battery = await heart.battery
        repeat {
            // A central without room gets the next one: nobody wants a heart rate of seconds ago.
            try await peripheral.update(await heart.beat(), of: .heartRateMeasurement, whenFull: .fail)
            guard await heart.battery != battery else { continue }
            battery = await heart.battery
            try await peripheral.update(battery, of: .batteryLevel, whenFull: .fail)
        } while (try? await clock.sleep(for: .seconds(1))) != nil
    }
}

/// A heart that is not there: replace it with the driver of a sensor.
public actor SimulatedHeart {
    private var seconds = 0
    private var energy: UInt16 = 0

    /// Creates a heart at rest.
    public init() {}

    /// The level of the battery: it lasts for a hundred minutes.
    public var battery: BatteryLevel { BatteryLevel(percentage: UInt8(clamping: 100 - seconds / 60)) }

    /// Returns the measurement of another second: the rate rises and falls between 60 and 80.
    public func beat() -> HeartRateMeasurement {
        seconds += 1
        if seconds % 10 == 0, energy < .max { energy += 1 }
        let rate = UInt16(60 + abs(seconds % 40 - 20))
        return HeartRateMeasurement(
            beatsPerMinute: rate, hasSkinContact: true, energyExpended: energy, rrIntervals1024: [60 * 1024 / rate])
    }

    /// Counts the expended energy from 0 again.
    public func resetEnergyExpended() { energy = 0 }
}

import BLECore
import BLEProfiles
import Testing

/// What the types give to programs; bytes as in `ValueDescriptionTests`.
@Suite struct BatteryTests {
    @Test func batteryValuesAreRead() throws {
        let status = try BatteryLevelStatus(value: Hex.decode("07210612014b01"))
        #expect(status.isPresent)
        #expect(status.wiredPower == .no)
        #expect(status.chargeState == .charging)
        #expect(status.chargeLevel == .unknown)
        #expect(status.chargingType == .trickle)
        #expect(status.identifier == 0x0112)
        #expect(status.level == BatteryLevel(percentage: 75))
        #expect(status.needsService == .yes)
        // All bits of the power state set: eisaev/blevalueparser, BatteryLevelStatusTest.
        let all = try BatteryLevelStatus(value: [0, 0xFF, 0xFF])
        #expect(all.wiredPower == .reserved)
        #expect(all.wirelessPower == .reserved)
        #expect(all.chargeState == .dischargingInactive)
        #expect(all.chargeLevel == .critical)
        #expect(all.chargingType.rawValue == 7 && all.chargingType.name == nil)
        #expect(all.hasChargingFaultOfBattery && all.hasChargingFaultOfPowerSource && all.hasOtherChargingFault)
        #expect(all.needsService == nil && all.hasBatteryFault == nil)
        // The battery's own fault is another bit: Zephyr's Battery Service.
        let faulty = try BatteryLevelStatus(value: [4, 1, 0, 4])
        #expect(faulty.hasBatteryFault == true && !faulty.hasChargingFaultOfBattery && faulty.needsService == .no)
    }
}

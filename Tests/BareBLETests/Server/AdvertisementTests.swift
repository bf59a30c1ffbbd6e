import BLECore
import Testing

@testable import BareBLE

/// The parameters of an advertisement that the controller receives.
@Suite struct AdvertisementTests {
    private func plan(_ advertisement: Advertisement) throws(BLEError) -> AdvertisingPlan {
        let controller = AdvertiseSession.Controller(
            features: .extendedAdvertising, maximumSets: 4, maximumDataLength: 1_650)
        return try advertisement.plan(on: controller, .public, nil, "hci0", during: "advertise")
    }

    @Test func thePHYsAndThePowerAreThoseThatAreSet() throws {
        var advertisement = Advertisement([.localName("Far")], kind: .nonconnectable, usesExtendedPDUs: true)
        advertisement.primaryPHY = .leCoded
        advertisement.txPower = -12
        let coded = try plan(advertisement)
        #expect(coded.primaryPHY == .leCoded && coded.secondaryPHY == .leCoded && coded.txPower == -12)
        advertisement.primaryPHY = .le1M
        advertisement.secondaryPHY = .le2M
        advertisement.txPower = nil
        let fast = try plan(advertisement)
        #expect(fast.primaryPHY == .le1M && fast.secondaryPHY == .le2M && fast.txPower == nil)
    }

    @Test(arguments: [(true, PHY.le2M, nil), (false, .leCoded, nil), (false, .le1M, .le2M)] as [(Bool, PHY, PHY?)])
    func aPHYThatThePDUsDoNotHaveIsRefused(_ isExtended: Bool, _ primary: PHY, _ secondary: PHY?) {
        var advertisement = Advertisement([.localName("Far")], kind: .nonconnectable, usesExtendedPDUs: isExtended)
        advertisement.primaryPHY = primary
        advertisement.secondaryPHY = secondary
        let error = #expect(throws: BLEError.self) { try plan(advertisement) }
        #expect(error?.code == .invalidArgument && error?.reason.contains("LE 1M") == true)
    }
}

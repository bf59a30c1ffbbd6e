import BLECore
import CBluetooth
import Glibc
import Testing

@testable import BLELinux

@Suite("Controllers") struct ControllersTests {
    /// As strace and the kernel's compatibility table show them.
    @Test func ioctlNumbersAreTheKernels() {
        #expect(ble_HCIDEVUP == 0x4004_48C9)
        #expect(ble_HCIDEVDOWN == 0x4004_48CA)
        #expect(ble_HCIDEVRESET == 0x4004_48CB)
        #expect(ble_HCIGETDEVLIST == 0x8004_48D2)
        #expect(ble_HCIGETDEVINFO == 0x8004_48D3)
        #expect(ble_HCIGETCONNLIST == 0x8004_48D4)
    }

    /// The second source of the layout is the C compiler, reading BlueZ's header.
    @Test func deviceInformationIsReadInTheKernelsLayout() throws {
        var device = hci_dev_info()
        device.dev_id = 3
        unsafe withUnsafeMutableBytes(of: &device.name) { unsafe $0.copyBytes(from: Array("hci3".utf8)) }
        unsafe withUnsafeMutableBytes(of: &device.bdaddr) { unsafe $0.copyBytes(from: [6, 5, 4, 3, 2, 1]) }
        device.flags = 0x5
        device.type = 0x13
        let info = ControllerInfo(record(device))
        #expect(info.index == 3)
        #expect(info.name == "hci3")
        #expect(info.address == BluetoothAddress("01:02:03:04:05:06"))
        #expect(info.isUp && info.isRunning)
        #expect(info.bus == .uart)
        device.flags = 0x4
        device.type = 0x0F
        unsafe withUnsafeMutableBytes(of: &device.name) { unsafe $0.copyBytes(from: Array("hci12345".utf8)) }
        let other = ControllerInfo(record(device))
        #expect(!other.isUp && other.isRunning)
        #expect(other.bus == nil)
        #expect(other.name == "hci12345")
    }

    /// Lines as `l2cap_debugfs_show` prints them, with and without types of addresses.
    @Test func adaptersThatCanPair() {
        let list = """
            5C:F3:70:9B:1A:02 (1) 00:00:00:00:00:00 (0) 4 0 0x0006 0x0000 672 0 0 0
            5C:F3:70:9B:1A:02 (0) 00:00:00:00:00:00 (0) 4 0 0x0007 0x0000 672 0 0 0
            5C:F3:70:9B:1A:03 (1) D1:00:00:00:00:01 (2) 1 0 0x0004 0x0006 672 672 1 0
            5c:f3:70:9b:1a:04 00:00:00:00:00:00 4 0 0x0006 0x0000 672 0 0 0
            0x0006

            """
        #expect(
            Controllers.pairingAddresses(inChannels: list)
                == Set(["5C:F3:70:9B:1A:02", "5C:F3:70:9B:1A:04"].compactMap { BluetoothAddress($0) }))
        #expect(Controllers.pairingAddresses(inChannels: "") == [])
        // A local user may open so many channels that the list is cut.
        let line = "5C:F3:70:9B:1A:03 (1) D1:00:00:00:00:01 (2) 1 0 0x0004 0x0006 672 672 1 0\n"
        let whole = 65_536 / line.utf8.count
        #expect(Controllers.pairingAddresses(inChannels: String(repeating: line, count: whole - 1)) == [])
        let cut = String(String(repeating: line, count: whole + 1).prefix(65_536))
        #expect(Controllers.pairingAddresses(inChannels: cut) == nil)
    }

    @Test func theListOfDevicesIsRead() {
        let bytes: [UInt8] = [2, 0, 0xAA, 0xAA, 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]
        #expect(Controllers.adapterIndices(KernelRecord(bytes, paddedTo: 4 + 64 * 8)) == [1, 0])
        #expect(Controllers.adapterIndices(KernelRecord([], paddedTo: 4 + 64 * 8)) == [])
        // More than was asked for is not believed.
        #expect(Controllers.adapterIndices(KernelRecord([0xFF, 0xFF], paddedTo: 4 + 64 * 8)).count == 64)
    }

    @Test func theKernelsListOfLinksIsRead() {
        var link = hci_conn_info()
        link.handle = 0x0040
        unsafe withUnsafeMutableBytes(of: &link.bdaddr) {
            unsafe $0.copyBytes(from: [0x66, 0x55, 0x44, 0x33, 0x22, 0xC1])
        }
        link.type = 0x80
        link.out = 1
        link.state = 1
        var classic = link
        classic.type = 0x01
        var pending = link
        pending.handle = 0x41
        pending.out = 0
        pending.state = 5
        let list: [UInt8] = [0, 0, 3, 0] + record(classic).bytes + record(link).bytes + record(pending).bytes
        let address = BluetoothAddress(rawValue: 0xC122_3344_5566)
        #expect(
            Controllers.links(KernelRecord(list, paddedTo: 4 + 64 * 16)) == [
                ControllerLink(handle: 0x40, address: address, isCentral: true, isConnected: true),
                ControllerLink(handle: 0x41, address: address, isCentral: false, isConnected: false),
            ])
    }

    @Test func theControllersOfThisMachineAreListed() {
        do {
            let list = try Controllers.list()
            #expect(Controllers.isAddressFamilyAvailable)
            for info in list { #expect(info.name == "hci\(info.index)") }
        } catch {
            #expect(!Controllers.isAddressFamilyAvailable)
            #expect(error.meaning == .noBluetooth)
            #expect(error.description.hasPrefix("socket: "))
        }
        expectFailure { () throws(SystemCallError) in try Controllers.powerUp(200) }
        expectFailure { () throws(SystemCallError) in try Controllers.powerDown(200) }
        expectFailure { () throws(SystemCallError) in try Controllers.reset(200) }
        #expect(throws: SystemCallError.self) { _ = try Controllers.info(200) }
        #expect(throws: SystemCallError.self) { _ = try Controllers.links(of: 200) }
    }

    private func expectFailure(_ call: () throws(SystemCallError) -> Void) {
        do {
            try call()
            Issue.record("an adapter that does not exist was switched")
        } catch {
            let expected: [LocalFailure] = [.noBluetooth, .adapterGone, .notPermitted(.netAdmin)]
            #expect(expected.contains(error.meaning))
        }
    }

    private func record<Value: BitwiseCopyable>(_ value: Value) -> KernelRecord {
        var value = value
        return KernelRecord(unsafe withUnsafeBytes(of: &value) { unsafe [UInt8]($0) }, paddedTo: 0)
    }
}

import BLECore
import BLELinux
import BareBLE
import TestSupport
import Testing

/// The list of the machine's adapters.
@Suite struct AdapterListTests {
    private let address = BluetoothAddress(rawValue: 0x001A_7DDA_7113)

    private func system(
        _ adapters: [ControllerInfo], blocked: String? = nil, error: Int32? = nil
    ) -> AdapterSystem {
        var system = AdapterSystem.kernel
        system.list = { () throws(SystemCallError) in
            if let error { throw SystemCallError(call: "socket", errno: error) }
            return adapters
        }
        system.isBlocked = { $0 == blocked }
        return system
    }

    @Test func eachAdapterIsDescribed() throws {
        let adapters = [
            ControllerInfo(index: 0, name: "hci0", address: address, isUp: true),
            ControllerInfo(index: 2, name: "hci2", address: .zero, isUp: false),
        ]
        let list = try AdapterDescription.list(system(adapters, blocked: "hci2"))
        let first = try #require(list.first)
        let last = try #require(list.last)
        #expect(list.map(\.index) == [0, 2])
        #expect(first.name == "hci0" && first.address == address && first.bus == .virtual)
        #expect(first.isUp && first.isPowered && !first.isBlocked)
        #expect(!last.isUp && !last.isPowered && last.isBlocked && last.address == nil)
        #expect(first.selector == .address(address) && last.selector == .named("hci2"))
        #expect(first.description == "hci0 (00:1A:7D:DA:71:13), virtual, up")
        #expect(last.description == "hci2 (no address), virtual, blocked")
        #expect(AdapterSelector.first.matches(first) && AdapterSelector.named("hci2").matches(last))
        #expect(AdapterSelector.address(address).matches(first) && !AdapterSelector.address(address).matches(last))
    }

    /// What is stored by such an address would be used with other adapters too.
    @Test(.row("W57", "W68"), .virtualTime) func anAddressThatOthersHaveIsReported() async throws {
        let own = BluetoothAddress(rawValue: 0x001A_7DDA_7114)
        let raspberryPi = try #require(BluetoothAddress("43:45:C0:00:1F:AC"))
        for (addresses, expected) in [
            ([address, own], [true, true]), ([address, address], [false, false]),
            ([raspberryPi, own], [false, true]), ([.zero, own], [false, true]),
        ] {
            let adapters = addresses.enumerated().map { number, address in
                ControllerInfo(index: UInt16(number), name: "hci\(number)", address: address, isUp: true)
            }
            let list = try AdapterDescription.list(system(adapters))
            #expect(list.map(\.hasOwnAddress) == expected)
            #expect(list.first?.selector == (expected[0] ? .address(addresses[0]) : .named("hci0")))
            let log = KeptLog(detail: "address")
            let bench = try await AdapterBench(logger: log.logger)
            bench.kernel.withLock { $0.controllers = adapters }
            try await bench.adapter.prepare(during: "scan")
            let isReported = !expected[0] && addresses[0] != .zero
            #expect(log.all.count == (isReported ? 1 : 0))
            #expect(log.all.allSatisfy { $0.hasSuffix("\(addresses[0])") })
        }
    }

    @Test func noneIsAnEmptyList() throws {
        #expect(try AdapterDescription.list(system([])).isEmpty)
    }

    @Test func aKernelWithoutBluetoothIsAnError() {
        // EAFNOSUPPORT, and EPERM from a filter of system calls.
        #expect(throws: error(.unsupported)) { try AdapterDescription.list(system([], error: 97)) }
        #expect(throws: error(.notPermitted)) { try AdapterDescription.list(system([], error: 1)) }
    }

    /// This machine's, whatever it has.
    @Test func theKernelIsAskedWithoutPrivileges() throws {
        do {
            let list = try Central.adapters()
            #expect(list.map(\.index) == list.map(\.index).sorted())
            #expect(list.allSatisfy { $0.name == "hci\($0.index)" })
        } catch {
            #expect(error.code == .unsupported && !Controllers.isAddressFamilyAvailable)
        }
    }
}

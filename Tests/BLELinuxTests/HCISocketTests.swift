import BLECore
import CBluetooth
import Glibc
import Testing

@testable import BLELinux

@Suite("HCI sockets") struct HCISocketTests {
    @Test func socketAddressesHaveTheKernelsLayout() {
        var raw = HCISocket.socketAddress(.raw, 2)
        #expect(unsafe withUnsafeBytes(of: &raw) { unsafe [UInt8]($0) } == [31, 0, 2, 0, 0, 0])
        var monitor = HCISocket.socketAddress(.monitor, nil)
        #expect(unsafe withUnsafeBytes(of: &monitor) { unsafe [UInt8]($0) } == [31, 0, 0xFF, 0xFF, 2, 0])
    }

    /// Types, two words of events and an opcode; two bytes of padding, which may hold anything, make it 16.
    @Test func aFilterHasTheKernelsLayout() {
        var reports = HCIFilter.reports.kernelFilter
        #expect(
            unsafe withUnsafeBytes(of: &reports) { unsafe [UInt8]($0.prefix(14)) } == [
                0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0,
            ])
        var one = HCIFilter(events: [0x0E, 0x0F], opcode: HCIOpcode(rawValue: 0x200C), data: true).kernelFilter
        #expect(
            unsafe withUnsafeBytes(of: &one) { unsafe [UInt8]($0.prefix(14)) } == [
                0x14, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x0C, 0x20,
            ])
        #expect(MemoryLayout<hci_filter>.size == 16)
        for filter in [HCIFilter.commands, .reports, .everything, HCIFilter(events: [5], opcode: .disconnect)] {
            #expect(HCIFilter(filter.kernelFilter) == filter)
        }
        #expect(HCIFilter.commands.events & 1 << 62 == 0)
    }

    @Test func packetsOfAStandInAreRead() throws {
        let (near, far) = try LinkSocket.pair()
        var socket = HCISocket(adopting: near)
        var buffer = [UInt8](repeating: 0, count: 16)
        #expect(socket.receive(into: &buffer) == .wouldBlock)
        do {
            let controller = HCISocket(adopting: far)
            #expect(controller.send([0x04, 0x0E, 0x01, 0x02]) == .sent)
            #expect(controller.send([UInt8](repeating: 4, count: 20)) == .sent)
            #expect(socket.receive(into: &buffer) == .packet(count: 4, length: 4))
            #expect(buffer.prefix(4) == [0x04, 0x0E, 0x01, 0x02])
            #expect(socket.receive(into: &buffer) == .packet(count: 16, length: 20))
            #expect(socket.receive(into: &buffer) == .wouldBlock)
        }
        #expect(socket.receive(into: &buffer) == .gone(errno: EPIPE))
        #expect(socket.receive(into: &buffer) == .gone(errno: EPIPE))
        #expect(socket.send([1]) == .failed(errno: EPIPE))
    }

    /// Without Bluetooth in the kernel the socket cannot be made; with it, there is no adapter of this number.
    @Test func aMissingAdapterIsATypedError() {
        do {
            _ = try HCISocket(adapter: 200)
            Issue.record("bound to an adapter that does not exist")
        } catch {
            if Controllers.isAddressFamilyAvailable {
                #expect(error == SystemCallError(call: "bind", errno: ENODEV))
                #expect(error.meaning == .adapterGone)
            } else {
                #expect(error.call == "socket")
                #expect(error.meaning == .noBluetooth)
            }
        }
    }
}

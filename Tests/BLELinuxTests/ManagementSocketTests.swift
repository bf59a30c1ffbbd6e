import BLECore
import BLELinux
import Glibc
import Testing

@Suite("Management socket") struct ManagementSocketTests {
    @Test func commandsGoOutAndEventsComeIn() throws {
        let (near, far) = try LinkSocket.pair()
        var socket = ManagementSocket(adopting: near)
        #expect(socket.receive() == .wouldBlock)
        do {
            var kernel = HCISocket(adopting: far)
            var buffer = [UInt8](repeating: 0, count: HCISocket.bufferSize)
            #expect(socket.send(ManagementReadControllerInformation(), adapter: 3) == .sent)
            #expect(kernel.receive(into: &buffer) == .packet(count: 6, length: 6))
            #expect(Array(buffer.prefix(6)) == [4, 0, 3, 0, 0, 0])
            // Command Status, Invalid Index; then one without its status, one that is shorter than its length field
            // says, and New Settings.
            #expect(kernel.send([2, 0, 3, 0, 3, 0, 4, 0, 0x11]) == .sent)
            #expect(kernel.send([2, 0, 3, 0, 2, 0, 4, 0]) == .sent)
            #expect(kernel.send([6, 0, 3, 0, 0, 8] + [UInt8](repeating: 0, count: 2047)) == .sent)
            #expect(kernel.send([6, 0, 3, 0, 4, 0, 0x81, 0x0A, 0, 0]) == .sent)
            guard case .event(let refusal) = socket.receive() else {
                Issue.record("no event")
                return
            }
            #expect(
                refusal.response(to: ManagementReadControllerInformation.self, of: 3)
                    == .failure(.status(.invalidIndex)))
            guard case .malformed = socket.receive(), case .malformed = socket.receive(),
                case .event(let settings) = socket.receive()
            else {
                Issue.record("damaged packets were taken for events")
                return
            }
            #expect(settings.content == .newSettings(ManagementSettings(rawValue: 0x0A81)))
            #expect(socket.receive() == .wouldBlock)
        }
        #expect(socket.receive() == .gone(errno: EPIPE))
    }

    /// The longest event that a length field can announce is read whole: a list of 9,361 connections.
    @Test func theLongestEventIsRead() throws {
        let (near, far) = try LinkSocket.pair()
        var socket = ManagementSocket(adopting: near)
        let kernel = HCISocket(adopting: far)
        let peers = [UInt8](repeating: 1, count: 9_361 * 7)
        let count = peers.count + 5
        let header: [UInt8] = [1, 0, 3, 0, UInt8(count & 0xFF), UInt8(count >> 8), 0x15, 0, 0, 0x91, 0x24]
        #expect(kernel.send(header + peers) == .sent)
        guard case .event(let event) = socket.receive() else {
            Issue.record("no event")
            return
        }
        #expect(try event.response(to: ManagementGetConnections.self, of: 3)?.get().count == 9_361)
    }

    /// 1,024 keys are one packet of 36,872 bytes, which a kernel without BT_SNDMTU would refuse with an error that says
    /// nothing.
    @Test func aListOfKeysIsOnePacketOrNone() throws {
        let key = ManagementLongTermKey(
            peer: ManagementPeer(PeerID(address: BluetoothAddress("C6:55:44:33:22:11")!, type: .random)),
            kind: .secureConnections, isCentral: false, size: 16, ediv: 0, rand: 0, key: .zero)
        let command = ManagementLoadLongTermKeys([ManagementLongTermKey](repeating: key, count: 1_024))
        for (largest, isTaken) in [(ManagementSocket.longPacket, true), (ManagementSocket.shortPacket, false)] {
            let (near, far) = try LinkSocket.pair()
            let socket = ManagementSocket(adopting: near, largestPacket: largest)
            var kernel = HCISocket(adopting: far)
            var buffer = [UInt8](repeating: 0, count: 0x10000)
            #expect(socket.send(command, adapter: 0) == (isTaken ? .sent : .failed(errno: EMSGSIZE)))
            #expect(
                kernel.receive(into: &buffer) == (isTaken ? .packet(count: 36_872, length: 36_872) : .wouldBlock))
            if isTaken { #expect(Array(buffer.prefix(8)) == [0x13, 0, 0, 0, 0x02, 0x90, 0x00, 0x04]) }
        }
    }

    /// Without Bluetooth in the kernel the socket cannot be made; with it, anybody may open it.
    @Test func theManagementChannelOpensWithoutPrivileges() throws {
        guard Controllers.isAddressFamilyAvailable else {
            do {
                _ = try ManagementSocket()
                Issue.record("opened a channel that does not exist")
            } catch {
                #expect(error.call == "socket" && error.meaning == .noBluetooth)
            }
            return
        }
        var socket = try ManagementSocket()
        #expect(socket.receive() == .wouldBlock)
        #expect([ManagementSocket.longPacket, ManagementSocket.shortPacket].contains(socket.largestPacket))
    }
}

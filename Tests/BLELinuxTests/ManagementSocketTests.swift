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
            // Command Status, Invalid Index; then one without its status, one that the buffer cannot hold, and New
            // Settings.
            #expect(kernel.send([2, 0, 3, 0, 3, 0, 4, 0, 0x11]) == .sent)
            #expect(kernel.send([2, 0, 3, 0, 2, 0, 4, 0]) == .sent)
            #expect(kernel.send([6, 0, 3, 0, 0, 8] + [UInt8](repeating: 0, count: 2048)) == .sent)
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

    /// Without Bluetooth in the kernel the socket cannot be made; with it, anybody may open it.
    @Test func theKernelsChannelOpensForEverybody() throws {
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
    }
}

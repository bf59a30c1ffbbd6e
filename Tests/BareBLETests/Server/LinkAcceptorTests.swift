import BLECore
import BLELinux
import BareBLETestKit
import Logging
import TestSupport
import Testing

@testable import BareBLE

/// Whose the links are that come to the listening socket.
@Suite(.timeLimit(.minutes(1))) struct LinkAcceptorTests {
    /// After a reset the controller uses the numbers of earlier links again. The event of the new link may be lost.
    @Test(arguments: [true, false]) func aResetEndsWhatWasInitiated(isReset: Bool) async throws {
        try await VirtualTime.run { time in
            let peer = PeerID(address: BluetoothAddress(rawValue: 0x45DE_A104_152D), type: .public)
            let (listening, announcing) = try LinkSocket.pair()
            let (near, far) = try LinkSocket.pair()
            var announcements = LinkSocket(adopting: announcing)
            _ = LinkSocket(adopting: far)
            let acceptor = LinkAcceptor(
                on: time.loop, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            let served = Lock(0)
            let socket = ListeningSocket(simulatedBy: listening) {
                ListeningSocket.AnnouncedLink(descriptor: near, peer: peer, handle: 0x0040) { nil }
            }
            try acceptor.begin(socket, of: "hci0", for: ObjectIdentifier(acceptor), readable: {}) { _, _, _ in
                served.withLock { $0 += 1 }
            }
            acceptor.began(try Self.ownLink())
            if isReset { acceptor.controllerReset() }
            let sent = announcements.send([0])
            #expect(sent == .sent)
            acceptor.acceptAll()
            #expect(served.withLock(\.self) == (isReset ? 1 : 0))
            acceptor.end()
        }
    }

    /// A link that is made again often has the handle of the one before, whose socket no connect has claimed.
    @Test func theNextLinkWithAHandleDoesNotGetTheSocketOfTheOneBefore() async throws {
        try await VirtualTime.run { time in
            let peer = PeerID(address: BluetoothAddress(rawValue: 0x27_45DE_A104), type: .public)
            let (listening, announcing) = try LinkSocket.pair()
            let (near, far) = try LinkSocket.pair()
            var announcements = LinkSocket(adopting: announcing)
            var earlier = LinkSocket(adopting: far)
            let acceptor = LinkAcceptor(
                on: time.loop, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            let socket = ListeningSocket(simulatedBy: listening) {
                ListeningSocket.AnnouncedLink(descriptor: near, peer: peer, handle: 0x0040) { nil }
            }
            try acceptor.begin(socket, of: "hci0", for: ObjectIdentifier(acceptor), readable: {}) { _, _, _ in }
            acceptor.began(try Self.ownLink())
            let sent = announcements.send([0])
            #expect(sent == .sent)
            acceptor.acceptAll()
            var buffer = [UInt8](repeating: 0, count: LinkSocket.bufferSize)
            let before = earlier.receive(into: &buffer)
            #expect(before == .wouldBlock, "it waits for its connect")
            acceptor.ended(0x0040)
            acceptor.began(try Self.ownLink())
            let after = earlier.receive(into: &buffer)
            let isClosed = if case .ended = after { true } else { false }
            #expect(isClosed)
            acceptor.end()
        }
    }

    /// The beginning of a link of the central role with the handle 0x0040.
    private static func ownLink() throws -> LEConnectionComplete {
        let bytes = try Hex.decode("3e130100400000002d1504a1de4527000000d00705")
        guard case .connectionComplete(let event) = try HCIEvent(bytes.span) else { throw WrongEvent() }
        return event
    }

    private struct WrongEvent: Error {}
}

internal import BLEProfiles
public import BareBLE
public import ServiceLifecycle

/// Connects a serial port with a peripheral that has the Nordic UART Service: what is written to the terminal goes to
/// the peer, and what the peer sends can be read from the terminal.
///
/// Both directions have flow control from end to end. Bytes for the peer stay in the terminal until the kernel has
/// taken those before them, and while there is no link. Bytes from the peer wait in the session's bounded buffer while
/// no program reads the terminal. Bytes that are lost all the same, with the link or because the buffer was full, are
/// reported to `report`.
public struct UARTBridge: Service, CustomStringConvertible {
    private let session: Session
    private let link: String
    private let report: @Sendable (String) -> Void

    /// Creates a bridge to the peer of this session; programs open its terminal at `link`.
    public init(_ session: Session, linkedAt link: String, report: @escaping @Sendable (String) -> Void) {
        self.session = session
        self.link = link
        self.report = report
    }

    /// The service's name in the log.
    public var description: String { "UART bridge" }

    /// Carries bytes until the daemon is stopped; then the subscription, the link and the terminal are closed.
    ///
    /// - Throws: `BLEError` with the session's final error, or the peer's refusal; `TerminalError`.
    public func run() async throws {
        do {
            let terminal = try PseudoTerminal(linkedAt: link)
            defer { terminal.removeLink() }
            let values = await session.subscribe(to: .nordicUARTTransmit)
            report("terminal \(terminal.path)")
            try await cancelWhenGracefulShutdown { try await carry(values, terminal) }
            await values.unsubscribe()
        } catch {
            await session.disconnect()
            throw error
        }
        await session.disconnect()
    }

    /// Carries both directions; the end of one ends the other.
    private func carry(_ values: SessionValueSequence<[UInt8]>, _ terminal: PseudoTerminal) async throws {
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await carryToTerminal(values, terminal) }
                group.addTask { try await carryToPeer(terminal) }
                _ = try await group.next()
                group.cancelAll()
            }
        } catch {
            // A failure after the cancellation of the task is the requested end.
            if !Task.isCancelled { throw error }
        }
    }

    private func carryToTerminal(_ values: SessionValueSequence<[UInt8]>, _ terminal: PseudoTerminal) async throws {
        var changes = values.makeAsyncIterator()
        while let change = try await changes.next() {
            switch change {
            case .began:
                report("began")
            case .value(let bytes):
                if changes.droppedBefore > 0 { report("lost \(changes.droppedBefore) values: the terminal was full") }
                try await terminal.write(bytes)
            case .interrupted(let error):
                report("interrupted, what was on the way is lost: \(error)")
            }
        }
    }

    private func carryToPeer(_ terminal: PseudoTerminal) async throws {
        var waiting: [UInt8] = []
        while true {
            // Another link may have a different MTU.
            let peer = try await session.ready()
            let length = await peer.maximumWriteLength(for: .withoutResponse)
            if waiting.isEmpty { waiting = try await terminal.read(upTo: length) }
            let piece = Array(waiting.prefix(length))
            do {
                // Returns when the kernel has taken the piece; only then is the next one read.
                try await peer.write(piece, to: .nordicUARTReceive, .withoutResponse)
                waiting.removeFirst(piece.count)
            } catch {
                // A lost link has not sent it: it is sent over the next one.
                guard error.code == .disconnected else { throw error }
            }
        }
    }
}

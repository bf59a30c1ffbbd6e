import ArgumentParser
import BLECore
import BLELinux
import BareBLE

struct Browse: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Read, write and subscribe on a screen of a peer's attributes.",
        usage: "blescan browse <peer> [--mtu <bytes>] [--record <file>] [<options>]",
        discussion: """
            EXAMPLES
              sudo blescan browse AA:BB:CC:DD:EE:FF
              blescan browse demo:heart-rate
              blescan browse unix:/run/peer.sock --record visit.btsnoop

            It connects and shows services, characteristics and descriptors with their
            values. The arrows select one; Enter reads it, w writes it, s subscribes to
            it or unsubscribes: the values change in place. After a write the value from
            before is marked, until another one is read or sent. The line that begins
            with = is the command that does the same in a shell; y copies it, where the
            terminal accepts OSC 52. Left folds a service, right unfolds it. ? shows all
            keys, d disconnects.

            A failure is shown in a line, and the screen goes on. After the link is lost
            c connects again.

            The live table of `scan` does the same: Enter on a device, then c. In the one
            of `replay --screen` c shows what was recorded of a link.

            --pair needs --passkey here.
            """)

    @OptionGroup var target: PeerOptions

    @OptionGroup var color: ColorOptions

    @OptionGroup var options: ConnectionOptions

    @Option(
        help: ArgumentHelp(
            "Write all packets to this new btsnoop file, for Wireshark, btmon -r and replay, or as pcap to a FIFO. ATT "
                + "packets are wrapped in synthetic ACL headers.",
            valueName: "file"),
        completion: .file())
    var record: String?

    var peer: PeerDesignation { target.peer }

    func validate() throws {
        if record == "-" { throw ValidationError("The screen needs standard output; --record takes a file here.") }
        if record == "" { throw ValidationError("--record takes the name of a file.") }
        if options.pair, options.passkey == nil {
            throw ValidationError(
                "Nothing can ask for a passkey on the screen; add --passkey DIGITS, or pair first, with "
                    + "`blescan pair`.")
        }
        if let obstacle = Terminal.obstacle {
            throw ValidationError("browse needs a full terminal: \(obstacle); `blescan explore` prints lines.")
        }
    }

    func run() async throws {
        let options = options
        let peer = try await Connection.find(target.peer, options)
        var recording = try RecordingOptions.parse([])
        recording.record = record
        let size = Terminal.size
        let screen = BrowseScreen(
            peer, linkOptions: options.linkWords,
            in: ScreenArea(columns: size.columns, rows: size.rows, ScreenLook(color.color ?? .auto)), at: Terminal.now()
        )
        let lastFailure = Lock<Failure?>(nil)
        let last = try await SessionRecording.during(recording, goesOn: true) { recording in
            try await Interrupt.cancelling {
                let last = try await LiveScreen.during(screen) { live in
                    let driver = LinkDriver(timeout: options.valueTimeout) { peer, found, body in
                        try await Connection.run(with: peer, options, recording: recording, found: found, body)
                    } report: { event in
                        if case .ended(let failure) = event { lastFailure.withLock { $0 = failure } }
                        live.report(event) { $0.take($1, at: $2) }
                    }
                    await driver.serve(live.requests(after: .connect(peer)))
                }
                // After ^C during the first attempt nothing was achieved.
                if !last.wasConnected { try Task.checkCancellation() }
                return last
            }
        }
        // The screen that has shown it is gone.
        if !last.wasConnected, let failure = lastFailure.withLock(\.self) { throw failure }
    }
}

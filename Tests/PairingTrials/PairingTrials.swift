import BareBLE
import Glibc

/// A program for the kernel tests that pairs as a test commands: each line of standard input is a command, and each
/// line of the output reports one thing.
///
///     pairing-trials DIRECTORY [SHORTEST-KEY] [exclusive]    keeps the bonds in this directory; with `exclusive`, it
///                                                            shares the adapter with no other program
///
///     ready                      puts the adapter under management
///     connect PEER               a link, under the peer's name in later commands
///     connect PEER WORD...       a link that is paired first, by the words of `pair`, unless the peer is bonded
///     link PEER                  a link without a request of its own
///     pair PEER [WORD]...        pairs in parallel to what follows; `PairingWords` has the words. A line `disk` before its
///                                end says what the file of bonds is like at that moment
///     cancel PEER                cancels the task that pairs
///     reply yes|no|PASSKEY       the agent's reply to a question
///     read PEER UUID             a value
///     channel PEER PSM           what a service sends back over a channel
///     subscribe PEER UUID        values, in parallel to what follows
///     disconnect PEER
///     session PEER UUID          a session that reads a value on each of its links, in parallel to what follows
///     end PEER                   ends the session
///     events                     what happens to bonds, in parallel to what follows
///     devices                    how many advertisers are known
///     find NAME                  scans until a device with this name is heard
///     identity PEER
///     bonds
///     forget PEER
///     quit
///
/// A command ends with one line: its words and what came of it, or `failed`, its words, the error's code and the error.
@main
enum PairingTrials {
    static func main() async {
        var words = Array(CommandLine.arguments.dropFirst())
        guard !words.isEmpty else { fail("no directory") }
        let trial: PairingTrial
        do {
            trial = try PairingTrial(
                directory: words.removeFirst(), shortestKey: words.first.flatMap { Int($0) } ?? 16,
                sharing: words.contains("exclusive") ? .exclusive : .observed)
        } catch {
            fail("\(error)")
        }
        say("began")
        for await line in lines() {
            let words = line.split(separator: " ").map(String.init)
            if words == ["quit"] { break }
            await trial.perform(words)
        }
        exit(0)
    }

    /// The lines of standard input. A thread of the pool waits for them.
    private static func lines() -> AsyncStream<String> {
        let (stream, continuation) = AsyncStream.makeStream(of: String.self)
        Task.detached {
            while let line = readLine() { continuation.yield(line) }
            continuation.finish()
        }
        return stream
    }

    static func say(_ line: String) {
        // At once: the test waits for the line. Not by the C library, whose streams another thread reads.
        let bytes = Array((line + "\n").utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(1, $0.baseAddress, $0.count) }
    }

    private static func fail(_ reason: String) -> Never {
        say("failed \(reason)")
        exit(1)
    }
}

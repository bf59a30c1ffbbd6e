import Glibc

/// The measured side of `make bench`. Most modes read their orders from standard input, one a line, and answer each
/// with one line, so that the runner can take turns between this program and the ones it is compared with.
@main
enum Benchmarks {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        switch arguments.first {
        case "parse": ParsingBenchmark.run()
        case "discover": await DiscoveryBenchmark.run()
        case "link":
            guard let descriptor = arguments.last.flatMap({ Int32($0) }) else { fallthrough }
            await LinkBenchmark.run(descriptor: descriptor)
        case "serve":
            guard let descriptor = arguments.last.flatMap({ Int32($0) }) else { fallthrough }
            await ServerBenchmark.run(descriptor: descriptor)
        default:
            print("usage: benchmarks parse | discover | link DESCRIPTOR | serve DESCRIPTOR")
            exit(64)
        }
    }
}

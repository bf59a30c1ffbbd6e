import Glibc

/// The measured side of `make bench`. Each mode reads its orders from standard input, one a line, and answers each with
/// one line, so that the runner can take turns between this program and the ones it is compared with.
@main
enum Benchmarks {
    static func main() {
        switch CommandLine.arguments.dropFirst().first {
        case "parse": ParsingBenchmark.run()
        default:
            print("usage: benchmarks parse")
            exit(64)
        }
    }
}

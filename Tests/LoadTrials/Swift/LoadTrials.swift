import Glibc

/// The library under load: many links, many values, many centrals, many reports, many cycles, many
/// days.
///
///     load-trials [--short] [TRIAL...]
///
/// All trials without a name. Each prints `ok NAME` with its figures, or `not ok NAME: why`; `--short` is a fraction of
/// each. Status 1 when one was not ok. Counts and bytes are asserted; times are only reported.
@main
enum LoadTrials {
    private static var trials: [any Trial.Type] {
        [
            LinksTrial.self, NotificationTrial.self, ServingTrial.self, FloodTrial.self, ReportTrial.self,
            CycleTrial.self,
            SoakTrial.self, MemoryTrial.self,
        ]
    }

    static func main() async {
        var names = Array(CommandLine.arguments.dropFirst())
        let scale: Scale = names.contains("--short") ? .short : .full
        names.removeAll { $0 == "--short" }
        let unknown = names.filter { name in !trials.contains { $0.name == name } }
        guard unknown.isEmpty else {
            print("load-trials: no trial \(unknown[0]); there are \(trials.map { $0.name }.joined(separator: ", "))")
            exit(64)
        }
        var isGood = true
        for trial in trials where names.isEmpty || names.contains(trial.name) {
            let start = ContinuousClock.now
            do {
                let figures = try await trial.run(scale)
                say("ok load, \(trial.name): \(trial.what) (\(Self.seconds(since: start)) s)")
                for figure in figures { say("    \(figure)") }
            } catch {
                isGood = false
                let rows = trial.rows.isEmpty ? "" : " (\(trial.rows.joined(separator: ", ")))"
                say("not ok load, \(trial.name)\(rows): \(error)")
            }
        }
        exit(isGood ? 0 : 1)
    }

    private static func seconds(since start: ContinuousClock.Instant) -> Int64 {
        (ContinuousClock.now - start).components.seconds
    }

    private static func say(_ line: String) {
        print(line)
        // The reader of a pipe needs the line now.
        fflush(nil)
    }
}

/// The size of each trial.
enum Scale {
    /// For every change: together less than a minute.
    case short
    /// The limits of Docs/users/reliability.md.
    case full
}

/// One kind of load.
protocol Trial {
    static var name: String { get }
    /// Prints a checked condition in a line.
    static var what: String { get }
    /// The rows of Tests/Catalogue that it shows.
    static var rows: [String] { get }
    /// Runs it; throws when something does not hold.
    static func run(_ scale: Scale) async throws -> [Figure]
}

extension Trial {
    static var rows: [String] { [] }
}

/// Names rows of Tests/Catalogue, as literals: `Tests/Tools/list-reliability` reads them from the sources.
func row(_ rows: String...) -> [String] { rows }

/// Something that was measured.
struct Figure: CustomStringConvertible {
    let name: String
    let value: String

    init(_ name: String, _ value: some CustomStringConvertible) {
        self.name = name
        self.value = value.description
    }

    var description: String { "\(name): \(value)" }
}

/// The failed conditions.
struct TrialFailure: Error, CustomStringConvertible {
    let description: String
}

func require(_ condition: Bool, _ why: @autoclosure () -> String) throws(TrialFailure) {
    if !condition { throw TrialFailure(description: why()) }
}

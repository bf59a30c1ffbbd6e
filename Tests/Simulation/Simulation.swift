import Glibc

/// Deterministic simulation of the whole stack above the descriptors: one seed, one world, one log.
///
///     simulation --seeds FROM..<TO [--tame]   plays these seeds; `--tame`: without asking that everything has happened once
///     simulation --seed N                     plays one, and prints its script and its log
///     simulation --serving N                  plays the peripheral role of one, and prints its log
///     simulation --shrink N                   leaves out of a failing seed what its failure needs not, and prints the script
///     simulation --fixture FILE               plays a script
///     simulation --hash FROM..<TO             plays each of these seeds twice; prints seed, hash and length of their logs
///
/// Status 1: something is wrong (with `--shrink`: nothing is); 64: wrong usage; 65: a script that makes no sense; 66:
/// no such script.
@main
enum Simulation {
    static func main() async {
        Crash.watch()
        let words = Array(CommandLine.arguments.dropFirst())
        switch (words.first, words.dropFirst().first) {
        case ("--seed", let word?): await show(Script(seed: seed(word)))
        case ("--serving", let word?): await showServing(seed(word))
        case ("--seeds", let word?): await playAll(range(word), isTame: words.contains("--tame"))
        case ("--hash", let word?): await hash(range(word))
        case ("--shrink", let word?): await shrink(Script(seed: seed(word)))
        case ("--fixture", let path?): await show(fixture(path))
        default: usage()
        }
    }

    private static func show(_ script: Script) async {
        print(script.text)
        Crash.begin(script.seed)
        let outcome = await World.play(script, keepsLines: true)
        for line in outcome.lines { print(line) }
        print("hash \(String(outcome.hash, radix: 16)): \(outcome.failure ?? "nothing is wrong")")
        if outcome.failure != nil { exit(1) }
    }

    private static func showServing(_ seed: UInt64) async {
        Crash.begin(seed)
        let outcome = await ServingWorld.play(seed: seed, keepsLines: true)
        for line in outcome.lines { print(line) }
        print("hash \(String(outcome.hash, radix: 16)): \(outcome.failure ?? "nothing is wrong")")
        if outcome.failure != nil { exit(1) }
    }

    private static func playAll(_ seeds: Range<UInt64>, isTame: Bool) async {
        var hash: UInt64 = 0
        var eventCounts = EventCounts()
        var failures = 0
        var simulated = Duration.zero
        let start = ContinuousClock.now
        for seed in seeds {
            Crash.begin(seed)
            let outcome = await World.play(Script(seed: seed))
            hash = hash &* 31 &+ outcome.hash
            eventCounts.add(outcome.eventCounts)
            simulated += outcome.duration
            if let failure = outcome.failure {
                failures += 1
                print("not ok simulation of seed \(seed): \(failure)")
                print("    again: simulation --seed \(seed); smaller: simulation --shrink \(seed)")
            }
            let serving = await ServingWorld.play(seed: seed)
            hash = hash &* 31 &+ serving.hash
            eventCounts.add(serving.eventCounts)
            simulated += serving.duration
            if let failure = serving.failure {
                failures += 1
                print("not ok simulation of the peripheral role, seed \(seed): \(failure)")
                print("    again: simulation --serving \(seed)")
            }
            // The next seed may trap.
            fflush(nil)
        }
        for (name, count) in eventCounts.counts.sorted(by: { $0.key < $1.key }) {
            print("    \(name)\(String(repeating: " ", count: max(1, 32 - name.count)))\(count)")
        }
        let missing = isTame ? [] : eventCounts.missing
        if !missing.isEmpty { print("not ok simulation is too tame: never seen: \(missing.joined(separator: ", "))") }
        let took = ContinuousClock.now - start
        print("\(seeds.count) seeds, \(simulated.components.seconds / 3600) simulated hours in \(took)")
        print("hash \(String(hash, radix: 16))")
        if failures > 0 || !missing.isEmpty { exit(1) }
        print("ok simulation of seeds \(seeds)")
    }

    private static func hash(_ seeds: Range<UInt64>) async {
        for seed in seeds {
            Crash.begin(seed)
            let (first, second) = (await World.play(Script(seed: seed)), await World.play(Script(seed: seed)))
            let serving = (await ServingWorld.play(seed: seed), await ServingWorld.play(seed: seed))
            print("\(seed) \(String(first.hash, radix: 16)) \(first.events) \(String(serving.0.hash, radix: 16))")
            guard first.hash != second.hash || serving.0.hash != serving.1.hash else { continue }
            print("not ok simulation of seed \(seed): the same seed made two logs")
            exit(1)
        }
    }

    private static func shrink(_ script: Script) async {
        guard let shrunk = await Shrinker.shrink(script) else {
            print("nothing is wrong with seed \(script.seed)")
            exit(1)
        }
        print("# \(shrunk.failure)\n\(shrunk.script.text)", terminator: "")
    }

    // MARK: Arguments

    private static func range(_ word: String) -> Range<UInt64> {
        let ends = word.split(separator: "..<").compactMap { UInt64($0) }
        guard ends.count == 2, ends[0] < ends[1] else { usage() }
        return ends[0]..<ends[1]
    }

    private static func seed(_ word: String) -> UInt64 {
        guard let seed = UInt64(word) else { usage() }
        return seed
    }

    private static func fixture(_ path: String) -> Script {
        guard let file = unsafe fopen(path, "r") else {
            print("\(path) cannot be read")
            exit(66)
        }
        defer { unsafe fclose(file) }
        var bytes: [UInt8] = []
        while case let byte = unsafe fgetc(file), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
        // Such as a folder, which opens.
        guard unsafe ferror(file) == 0 else {
            print("\(path) cannot be read")
            exit(66)
        }
        do {
            return try Script(text: String(decoding: bytes, as: UTF8.self))
        } catch {
            print("\(path): \(error)")
            exit(65)
        }
    }

    private static func usage() -> Never {
        print(
            "usage: simulation --seeds A..<B [--tame] | --hash A..<B | --seed N | --serving N | --shrink N | --fixture FILE"
        )
        exit(64)
    }
}

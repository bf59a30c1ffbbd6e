import BLECore

/// Leaves out of a script what its failure does not need: steps, first many at once; then peers, adapters and time.
enum Shrinker {
    /// How many scripts are tried at most.
    private static let trials = 3000

    /// The smallest script that was found to fail in the same way; `nil` when the script does not fail.
    static func shrink(_ script: Script) async -> (script: Script, failure: String)? {
        guard let failure = await failure(of: script) else { return nil }
        var best = (script: script, failure: failure)
        var left = trials
        func isSame(_ candidate: Script) async -> Bool {
            guard left > 0 else { return false }
            left -= 1
            guard let failure = await Self.failure(of: candidate), kind(failure) == kind(best.failure) else {
                return false
            }
            best = (candidate, failure)
            return true
        }
        while left > 0 {
            let before = best.script
            await leaveOutSteps(from: best.script, isSame)
            for index in best.script.peers.indices where best.script.peers[index] != .absent {
                for kind in [Script.PeerKind.absent, .honest] where best.script.peers[index] != kind {
                    var candidate = best.script
                    candidate.peers[index] = kind
                    if await isSame(candidate) { break }
                }
            }
            if !best.script.neighbours.isEmpty {
                var candidate = best.script
                candidate.neighbours = []
                _ = await isSame(candidate)
            }
            if !best.script.security.isEmpty {
                var candidate = best.script
                candidate.security = []
                _ = await isSame(candidate)
            }
            if best.script.adapters.count > 1 {
                var candidate = best.script
                candidate.adapters.removeLast()
                _ = await isSame(candidate)
            }
            for index in best.script.adapters.indices where best.script.adapters[index] != Script.usualAdapter {
                var candidate = best.script
                candidate.adapters[index] = Script.usualAdapter
                _ = await isSame(candidate)
            }
            if !best.script.linkLimits.isEmpty {
                var candidate = best.script
                candidate.linkLimits = []
                _ = await isSame(candidate)
            }
            if !best.script.dataLosses.isEmpty {
                var candidate = best.script
                candidate.dataLosses = []
                _ = await isSame(candidate)
            }
            if best.script.recovery != .rescan {
                var candidate = best.script
                candidate.recovery = .rescan
                _ = await isSame(candidate)
            }
            var candidate = best.script
            candidate.length = (best.script.steps.last?.time ?? 0) + 1
            if candidate.length < best.script.length { _ = await isSame(candidate) }
            if best.script == before { break }
        }
        return best
    }

    private static func leaveOutSteps(from script: Script, _ isSame: (Script) async -> Bool) async {
        var size = max(1, script.steps.count / 2)
        var current = script
        while true {
            var start = 0
            while start < current.steps.count {
                var candidate = current
                candidate.steps.removeSubrange(start..<min(start + size, candidate.steps.count))
                if await isSame(candidate) {
                    current = candidate
                } else {
                    start += size
                }
            }
            if size == 1 { break }
            size /= 2
        }
    }

    private static func failure(of script: Script) async -> String? {
        Crash.begin(script.seed)
        return await World.play(script).failure
    }

    /// The failure, without its numbers.
    private static func kind(_ failure: String) -> String {
        String(failure.filter { $0.isLetter || $0 == " " }.prefix(60))
    }
}

// The steps of a scan: the commands that set it up and end it, what is answered behind them, and the pauses between attempts.

extension ScanSession {
    var shouldScan: Bool { wanted != nil && !isPaused }

    /// Goes on from a state in which no command is out; from any other the answer will do it.
    mutating func proceed(at now: BootInstant) -> [Action] {
        switch state {
        case .disabling, .configuring, .enabling:
            return []
        case .asleep:
            return settle()
        case .resting:
            return shouldScan ? disable() : settle()
        case .scanning:
            if shouldScan && configured == wanted { return [] }
            return disable()
        case .waiting:
            return disable()
        }
    }

    mutating func disable(again: Bool = false) -> [Action] {
        state = .disabling(again: again)
        return [.send(controller.scanOff)]
    }

    mutating func configure(again: Bool) -> [Action] {
        guard let plan = wanted else { return [] }
        state = .configuring(again: again)
        configured = plan
        return [.send(controller.parameters(for: plan))]
    }

    mutating func enable() -> [Action] {
        guard let plan = configured else { return [] }
        state = .enabling
        wasDisturbed = false
        return [.send(controller.scanOn(for: plan))]
    }

    /// Waits before the next attempt; without a failure the scanner is held by somebody else.
    mutating func fail(_ failure: HCICommandFailure?, at now: BootInstant) -> [Action] {
        let pause = nextPause()
        state = .waiting(until: now + pause)
        configured = nil
        guard let failure else { return [.tell(.scanBusy(retry: pause))] }
        return [.tell(.unable(failure, retry: pause))]
    }

    mutating func rest(at now: BootInstant) -> [Action] {
        state = .resting
        configured = nil
        return settle()
    }

    /// Ends the scan once more after a pause; who waits for its end is told meanwhile.
    mutating func endLater(at now: BootInstant) -> [Action] {
        state = .waiting(until: now + nextPause())
        configured = nil
        return settle()
    }

    /// Answers what was asked for while the radio was not free.
    mutating func settle() -> [Action] {
        var actions = settleEnded()
        if owesPaused {
            owesPaused = false
            actions.append(.tell(.paused))
        }
        return actions
    }

    mutating func settleEnded() -> [Action] {
        guard owesEnded else { return [] }
        owesEnded = false
        return [.tell(.ended)]
    }

    mutating func nextPause() -> Duration {
        let pause = Self.firstPause * (1 << min(attempts, 6))
        attempts += 1
        return min(pause, Self.longestPause)
    }

    /// How long a running scan may bring no data before it is set up again.
    package static let patience: Duration = .seconds(90)
    /// After how long without trouble pauses are short again.
    package static let healthy: Duration = .seconds(60)
    /// The first pause before an attempt is repeated.
    package static let firstPause: Duration = .milliseconds(500)
    /// The longest pause before an attempt is repeated.
    package static let longestPause: Duration = .seconds(30)
}

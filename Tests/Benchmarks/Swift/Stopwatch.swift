import Glibc

/// Nanoseconds of the monotonic clock that `work` takes.
func nanoseconds(_ work: () -> Void) -> Int {
    let start = ContinuousClock.now
    work()
    return nanoseconds(since: start)
}

/// Nanoseconds of the monotonic clock since `start`.
func nanoseconds(since start: ContinuousClock.Instant) -> Int {
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
}

/// Prints a response at once, though standard output is a pipe.
func answer(_ line: String) {
    print(line)
    fflush(nil)
}

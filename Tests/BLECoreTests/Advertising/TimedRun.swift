import BLECore
import Testing

/// A session whose responses and time the test lets come.
protocol TimedRun: AnyObject {
    var now: BootInstant { get }
    /// When the session has to do something.
    var deadline: BootInstant? { get }

    /// Executes the commands that are out, one after the other.
    func respondAll()
    func advance(by duration: Duration)
}

extension TimedRun {
    /// Lets everything come that is due, at once.
    func settle() {
        for _ in 0..<300 {
            respondAll()
            guard let due = deadline else { return }
            advance(by: max(.zero, due - now))
        }
        Issue.record("the session does not come to rest")
    }
}

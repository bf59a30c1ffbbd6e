internal import Glibc

/// A failed system call and its error number.
package struct SystemCallError: Error, Hashable, Sendable {
    /// The call, e.g. `bind` or `HCIDEVUP`.
    package let call: String
    /// The error number; positive.
    package let errno: Int32

    package init(call: String, errno: Int32) {
        self.call = call
        self.errno = errno
    }

    /// Returns the result of a C function, or throws the error that it returned as a negative number.
    @discardableResult
    static func check(_ call: String, _ result: Int32) throws(SystemCallError) -> Int32 {
        guard result < 0 else { return result }
        throw SystemCallError(call: call, errno: -result)
    }
}

extension SystemCallError {
    /// Repeats a call for as long as signals interrupt it.
    static func repeated<Result: SignedInteger>(_ call: () -> Result) -> Result {
        while true {
            let result = call()
            if result >= 0 || Glibc.errno != EINTR { return result }
        }
    }

    /// Whether the kernel was short of memory, which passes, rather than the call invalid.
    var isShortage: Bool { errno == ENOMEM || errno == ENOBUFS }

    /// The kernel's buffer is full.
    package static let tryAgain = EAGAIN
    /// A capability is lacking.
    package static let notPermitted = EPERM
    /// The adapter is switched off.
    package static let down = ENETDOWN
    /// The adapter is blocked by a switch.
    package static let blocked = ERFKILL
    /// Another program has it.
    package static let busy = EBUSY
    /// There is no link.
    package static let notConnected = ENOTCONN
}

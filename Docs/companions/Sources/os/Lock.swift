// The names are those of Apple's modules, whose documentation describes them.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, AlwaysUseLowerCamelCase

import Foundation

/// A lock around a value.
public final class OSAllocatedUnfairLock<State>: @unchecked Sendable {
    fileprivate let mutex = NSLock()
    private var state: State

    public init(uncheckedState initialState: State) {
        state = initialState
    }

    public init(initialState: State) where State: Sendable {
        state = initialState
    }

    /// Runs `body` with exclusive access to the value.
    public func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        mutex.lock()
        defer { mutex.unlock() }
        return try body(&state)
    }

    /// Runs `body` with exclusive access to the value.
    public func withLockUnchecked<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        try withLock(body)
    }
}

extension OSAllocatedUnfairLock where State == Void {
    public convenience init() { self.init(uncheckedState: ()) }

    public func lock() { mutex.lock() }
    public func unlock() { mutex.unlock() }
}

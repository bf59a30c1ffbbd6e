// The names are those of Apple's modules, whose documentation describes them.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, AlwaysUseLowerCamelCase

// Combine by OpenCombine, with what that lacks and code next to CoreBluetooth uses.

@_exported import CoreBluetooth
@_exported import OpenCombine
@_exported import OpenCombineDispatch
@_exported import OpenCombineFoundation

extension CBKeyValueObservable {
    /// Returns a publisher of a property: its present value, and each later one, once for each subscriber.
    public func publisher<Value>(
        for keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [.initial, .new]
    ) -> AnyPublisher<Value, Never> {
        Deferred { () -> AnyPublisher<Value, Never> in
            // One for each subscriber.
            let feed = PropertyFeed<Value>()
            // The value of the change: the property may have the next one by now, which has a change of its own.
            let observation = self.observe(keyPath, options: .new) { _, change in
                if let value = change.newValue { feed.changed(to: value) }
            }
            feed.begin(with: options.contains(.initial) ? self[keyPath: keyPath] : nil)
            return feed.values.handleEvents(receiveCancel: observation.invalidate).eraseToAnyPublisher()
        }.eraseToAnyPublisher()
    }
}

/// The values of a property for one subscriber. Changes may come on another thread,
/// also before the subscription is complete.
private final class PropertyFeed<Value>: @unchecked Sendable {
    /// Keeps the newest value until there is a subscriber for it.
    private let subject = CurrentValueSubject<Value?, Never>(nil)
    private let lock = NSLock()
    private var hasBegun = false
    /// The newest value that came before the beginning.
    private var early: Value?
    /// The value at the beginning, until the first change.
    private var initial: Value?

    var values: AnyPublisher<Value, Never> { subject.compactMap { $0 }.eraseToAnyPublisher() }

    /// Sends the present value, unless a change was faster, and the changes from now on.
    func begin(with present: Value?) {
        lock.lock()
        defer { lock.unlock() }
        hasBegun = true
        initial = early ?? present
        // There is no subscriber yet.
        if let initial { subject.send(initial) }
    }

    func changed(to value: Value) {
        lock.lock()
        let isNews = hasBegun && !isInitial(value)
        if hasBegun { initial = nil } else { early = value }
        lock.unlock()
        if isNews { subject.send(value) }
    }

    /// Whether this is the change to the value that was there at the beginning.
    private func isInitial(_ value: Value) -> Bool {
        func isEqual<Other: Equatable>(_ other: Other) -> Bool { value as? Other == other }
        return (initial as? any Equatable).map { isEqual($0) } ?? false
    }
}

extension Publisher {
    /// Returns a publisher of the values of this one and of another one, as they come.
    public func merge<Other: Publisher>(with other: Other) -> AnyPublisher<Output, Failure>
    where Other.Output == Output, Other.Failure == Failure {
        Publishers.Sequence(sequence: [eraseToAnyPublisher(), other.eraseToAnyPublisher()]).setFailureType(
            to: Failure.self
        )
        .flatMap { $0 }.eraseToAnyPublisher()
    }
}

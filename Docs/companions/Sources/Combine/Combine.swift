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
            // One for each subscriber. It keeps a value that comes before the subscription is complete.
            let subject = CurrentValueSubject<Value?, Never>(nil)
            // The value of the change: the property may have the next one by now, which has a change of its own.
            let observation = self.observe(keyPath, options: options.union(.new)) { _, change in
                if let value = change.newValue { subject.send(value) }
            }
            return subject.compactMap { $0 }.handleEvents(receiveCancel: observation.invalidate).eraseToAnyPublisher()
        }.eraseToAnyPublisher()
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

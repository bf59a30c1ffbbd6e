// The names are those of Apple's modules, whose documentation describes them.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation, AlwaysUseLowerCamelCase

// Combine by OpenCombine, with what that lacks and code next to CoreBluetooth uses.

@_exported import CoreBluetooth
@_exported import OpenCombine
@_exported import OpenCombineDispatch
@_exported import OpenCombineFoundation

extension CBKeyValueObservable {
    /// Returns a publisher of a property: its present value, and each later one.
    public func publisher<Value>(
        for keyPath: KeyPath<Self, Value>, options: NSKeyValueObservingOptions = [.initial, .new]
    ) -> AnyPublisher<Value, Never> {
        let subject = PassthroughSubject<Value, Never>()
        return Deferred { () -> AnyPublisher<Value, Never> in
            let observation = self.observe(keyPath, options: options.subtracting(.initial)) { object, _ in
                subject.send(object[keyPath: keyPath])
            }
            let later = subject.handleEvents(receiveCancel: observation.invalidate)
            guard options.contains(.initial) else { return later.eraseToAnyPublisher() }
            return later.prepend(self[keyPath: keyPath]).eraseToAnyPublisher()
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

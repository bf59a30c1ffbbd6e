import BareBLETestKit
import Testing

/// Runs each test in a virtual time of its own, so that no deadline passes because the machine is busy.
///
/// Time stands still while anything can run. It knows only of what runs in it: a test starts tasks with `async let`,
/// with groups or with `testTask`, never with `Task`, and creates its centrals and peers with `VirtualTimeTrait.time`.
struct VirtualTimeTrait: TestTrait, SuiteTrait, TestScoping {
    /// The virtual time of the current test.
    @TaskLocal static var time: VirtualTime?

    var isRecursive: Bool { true }

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        try await withoutActuallyEscaping(function) { function in
            try await VirtualTime.run { time in
                try await Self.$time.withValue(time) { try await function() }
            }
        }
    }
}

extension Trait where Self == VirtualTimeTrait {
    /// The test runs in virtual time.
    static var virtualTime: VirtualTimeTrait { VirtualTimeTrait() }
}

/// Starts a task in the virtual time of the test.
@discardableResult func testTask<Value: Sendable>(
    _ body: @concurrent @Sendable @escaping () async throws -> Value
) -> Task<Value, any Error> {
    Task(executorPreference: VirtualTimeTrait.time?.loop) { try await body() }
}

/// Starts a task that does not fail in the virtual time of the test.
@discardableResult func testTask<Value: Sendable>(_ body: @concurrent @Sendable @escaping () async -> Value) -> Task<
    Value, Never
> {
    Task(executorPreference: VirtualTimeTrait.time?.loop) { await body() }
}

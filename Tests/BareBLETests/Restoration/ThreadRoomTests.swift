import BareBLE
import Glibc
import Testing

/// Blocking work if the system has no thread for it. In a process of its own, which has dropped its privileges.
@Suite(.timeLimit(.minutes(10))) struct ThreadRoomTests {
    @Test func aStateThatNoThreadCanReadIsNoEmptyState() async {
        await #expect(processExitsWith: .success) {
            var configuration = Configuration()
            configuration.stateStore = StateStore(directory: "/tmp", identifier: "bareble-no-room")
            let central = Central(configuration)
            // The loop has its thread from here on.
            #expect(await central.stateStatus == nil)
            // Root may have any number of threads; other users may have no more than this process has already.
            if getuid() == 0 { #expect(setuid(65_534) == 0) }
            var limit = rlimit(rlim_cur: 1, rlim_max: 1)
            #expect(unsafe setrlimit(Int32(__RLIMIT_NPROC.rawValue), &limit) == 0)
            let failure = await #expect(throws: BLEError.self) {
                try await central.restore(from: ServiceEnvironment(variables: [:], processID: 1))
            }
            #expect(failure?.code == .system)
            #expect(failure?.reason == "no further thread can be started")
        }
    }
}

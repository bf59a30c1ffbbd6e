import BLECore
import BLELinux
import BareBLE

// The power of the adapters of a self-test.
//
// Invariants
// - It is switched under the claim of the steps of recovery: of two programs that switch one adapter, each would undo
//   the step of the other. Off and on is one step, under one claim.
// - Whether an adapter is on is read under that claim too: what another program has off for a moment is not what was
//   found.
// - What has to be restored is tried again for some time, also in a cancelled task: the step of another program ends,
//   and a controller may respond to a later attempt.

/// Why the power of an adapter was not switched.
enum SelfTestPowerFailure: Error, Hashable, Sendable, CustomStringConvertible {
    case system(SystemCallError)
    /// Another program takes a step of recovery.
    case claimed

    var description: String {
        switch self {
        case .system(let error): error.description
        case .claimed: "another program takes a recovery step for it"
        }
    }

    /// The exit status of a test that cannot begin for it.
    var status: ExitStatus {
        switch self {
        case .claimed: .timedOut
        case .system(let error):
            switch error.meaning {
            case .inUse: .timedOut
            case .notPermitted(.netRaw): .notPermitted
            default: .noAdapter
            }
        }
    }

    /// Whether a later attempt may succeed.
    fileprivate var mayPass: Bool {
        switch self {
        case .claimed: true
        case .system(let error):
            switch error.meaning {
            case .noResponse, .adapterGone, .inUse, .outOfResources, .other: true
            case .noBluetooth, .notPermitted, .adapterDown, .blocked, .noAddress, .unconfigured: false
            }
        }
    }
}

extension SelfTestMachine {
    /// Longer than a step of another program usually takes.
    private static let restorationTime: Duration = .seconds(30)
    /// How long an adapter that is gone may take to come back.
    private static let returnTime: Duration = .seconds(5)
    private static let restorationPause: Duration = .milliseconds(500)

    /// Claims an adapter for a change of its power; `nil` if nothing is known of other programs.
    func claimPower(of index: UInt16) throws(SelfTestPowerFailure) -> RecoveryClaim? {
        let info: ControllerInfo
        do throws(SystemCallError) {
            info = try system.info(index)
        } catch {
            throw .system(error)
        }
        do throws(RecoveryFailure) {
            return try system.claimRecovery(info)
        } catch {
            throw .claimed
        }
    }

    /// Switches an adapter on or off, under a claim of the caller.
    func setPower(of index: UInt16, _ isOn: Bool) async -> SystemCallError? {
        let system = system
        do throws(WorkFailure) {
            return try await loop.offload { () -> SystemCallError? in
                do throws(SystemCallError) {
                    try isOn ? system.powerUp(index) : system.powerDown(index)
                    return nil
                } catch {
                    // An error of the driver does not keep the kernel from switching it off.
                    guard !isOn, let now = try? system.info(index), !now.isUp else { return error }
                    return nil
                }
            }
        } catch {
            return SystemCallError(call: "pthread_create", errno: SystemCallError.tryAgain)
        }
    }

    /// Switches an adapter back to what it was found as, which is tried again while that may help.
    ///
    /// - Returns: Why it is not as it was found; `nil` also for one that is gone.
    func restorePower(of index: UInt16, _ isOn: Bool) async -> SelfTestPowerFailure? {
        let deadline = loop.now() + Self.restorationTime
        while true {
            guard let failure = await switchPower(of: index, isOn) else { return nil }
            // The driver may report that of a device which is there and does not respond.
            if case .system(let error) = failure, error.meaning == .adapterGone, (try? system.info(index)) == nil {
                return nil
            }
            guard failure.mayPass, loop.now() < deadline else { return failure }
            await pause()
        }
    }

    /// Switches an adapter on that comes back under any number, as after a reset of its device by the driver: the kernel
    /// leaves it off.
    ///
    /// - Returns: Why it is off; `nil` also for one that does not come back.
    func switchOnReturned(_ address: BluetoothAddress) async -> SelfTestPowerFailure? {
        let deadline = loop.now() + Self.returnTime
        while true {
            if let found = (try? system.list())?.first(where: { $0.address == address }) {
                return found.isUp ? nil : await restorePower(of: found.index, true)
            }
            guard loop.now() < deadline else { return nil }
            await pause()
        }
    }

    private func pause() async {
        let loop = loop
        // A task of its own, which is not cancelled with this one.
        let pause = Task(executorPreference: loop) {
            _ = try? await CentralClock(loop: loop).sleep(for: Self.restorationPause)
        }
        await pause.value
    }

    private func switchPower(of index: UInt16, _ isOn: Bool) async -> SelfTestPowerFailure? {
        do throws(SelfTestPowerFailure) {
            let claim = try claimPower(of: index)
            defer { withExtendedLifetime(claim) {} }
            // A test without the right has not switched it on.
            if (try? system.info(index))?.isUp == isOn { return nil }
            return await setPower(of: index, isOn).map { SelfTestPowerFailure.system($0) }
        } catch {
            return error
        }
    }
}

public import BLECore
internal import BLELinux

/// What may happen to a link in the middle of something.
public enum VirtualInterruption: Hashable, Sendable {
    /// The peripheral ends the link, for the reason that the controller then tells.
    case hangUp(HCIStatus)
    /// The peripheral is not heard any more.
    case outOfRange
    /// The peripheral is reset and forgets everything.
    case reset
    /// The adapter of this name is switched off.
    case powerOff(String)
    /// The adapter of this name is reset.
    case adapterReset(String)
    /// The adapter of this name is pulled out.
    case unplug(String)
}

extension VirtualRadio {
    /// Interrupts a peripheral's link at an exact moment: with the PDU of this number, counted in both directions from now on.
    ///
    /// If it is the client's, the peripheral has read it and does not answer; if it is the peripheral's own, it was sent, and the
    /// client finds it together with what has happened. It happens once; zero takes an earlier one back.
    public func interrupt(
        _ peripheral: VirtualPeripheral, afterPDU number: Int, by interruption: VirtualInterruption
    ) {
        guard number > 0 else { return peripheral.assumeIsolated { $0.observe(nil) } }
        let left = Lock(number)
        let observer: @Sendable (Bool) -> Void = { [weak self, weak peripheral] _ in
            let isDue = left.withLock { left in
                left -= 1
                return left == 0
            }
            guard isDue, let self, let peripheral else { return }
            peripheral.assumeIsolated { $0.observe(nil) }
            self.assumeIsolated { $0.happen(interruption, to: peripheral) }
        }
        peripheral.assumeIsolated { $0.observe(observer) }
    }

    /// Lets something happen to a peripheral and its links now.
    package func happen(_ interruption: VirtualInterruption, to peripheral: VirtualPeripheral) {
        switch interruption {
        case .hangUp(let reason): hangUp(peripheral, because: reason)
        case .outOfRange: move(peripheral, to: .outOfRange)
        case .reset: reset(peripheral)
        case .powerOff(let name): powerOff(name)
        case .adapterReset(let name): reset(name)
        case .unplug(let name): unplug(name)
        }
    }

    /// Tells the end of a peripheral's links, which ends them only with `finishEnd`: what it sends in between arrives behind the event.
    package func announceEnd(of peripheral: VirtualPeripheral, because reason: HCIStatus) {
        forEachLink(of: peripheral) { adapter, handle in
            send(VirtualController.disconnectionComplete(handle, reason), adapter)
        }
    }

    package func finishEnd(of peripheral: VirtualPeripheral, because reason: HCIStatus) {
        forEachLink(of: peripheral) { adapter, handle in end(adapter, handle, reason, tell: false) }
    }

    /// Calls a handler on the loop with each HCI packet, before a command is answered and after an event was sent.
    package func observe(_ handler: (@Sendable (_ isCommand: Bool) -> Void)?) {
        exchanged = handler
    }
}

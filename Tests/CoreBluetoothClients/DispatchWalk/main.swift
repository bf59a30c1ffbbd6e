// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// A belt of a virtual radio is read on the main queue, which `dispatchMain()` serves. Each step is a line. It ends when
// a location and a rate were received, and the belt is disconnected.

import ClientInSwift5
import CoreBluetoothTestKit

// A test that waits for it does not wait for good.
alarm(300)
setvbuf(stdout, nil, _IOLBF, 0)
let reader = BeltReader(queue: nil)
reader.onStep = { step in
    dispatchPrecondition(condition: .onQueue(.main))
    print(step)
    if step.hasPrefix("disconnected") { exit(step == "disconnected true" ? 0 : 1) }
    if !reader.rates.isEmpty, reader.steps.contains("location 1") { reader.stop() }
}
Task {
    let radio = VirtualRadio()
    await radio.add(.heartRate)
    CoreBluetoothHost.use(radio: radio)
    DispatchQueue.main.async { reader.start() }
}
dispatchMain()

// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// Reads a belt of a virtual radio, for a minute: a line for each step.

#if os(Linux)
import App
import CoreBluetoothTestKit

let radio = VirtualRadio()
await radio.add(.heartRate)
CoreBluetoothHost.use(radio: radio)

let reader = BeltReader()
reader.onStep = { print($0) }
reader.start()
try await Task.sleep(for: .seconds(60))
#endif

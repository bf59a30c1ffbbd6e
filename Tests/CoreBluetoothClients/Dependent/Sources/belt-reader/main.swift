// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// Reads a heart-rate belt, as for macOS: what it looks for, a line for each step, three values, and the end. Without an
// adapter that is on, it ends at once.

import App
import CoreBluetooth

setvbuf(stdout, nil, _IOLBF, 0)
let reader = BeltReader(queue: .main)
reader.onStep = { step in
    print(step)
    if step == "rate", reader.rates.count == 3 { reader.stop() }
    if step == "not ready" { exit(1) }
    if step.hasPrefix("disconnected") { exit(step == "disconnected true" ? 0 : 1) }
}
print("looks for \(serviceName(CBUUID(string: "180D")))")
reader.start()
RunLoop.main.run()

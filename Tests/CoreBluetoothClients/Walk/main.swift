// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// Both roles for the command line, for the tests on the kernel's sockets: `corebluetooth-walk read` finds a heart-rate
// belt, reads its location, receives three values and disconnects, and `corebluetooth-walk keep` stays subscribed until
// it is ended, with `queue` on a queue of its own; `corebluetooth-walk serve` offers a temperature until it is ended,
// with `one` off air after the first subscription, and `corebluetooth-walk measure` reads it, receives one and
// disconnects; `corebluetooth-walk echo` offers a channel on encrypted links until it is ended. Each step is a line.

import ClientInSwift5
import CoreBluetooth

setvbuf(stdout, nil, _IOLBF, 0)
let arguments = CommandLine.arguments.dropFirst()
let reader = BeltReader(queue: arguments.last == "queue" ? DispatchQueue(label: "belt") : .main)
let thermometer = Thermometer(queue: .main)
let thermometerReader = ThermometerReader(queue: .main)
let channelEcho = ChannelEcho()

switch arguments.first {
case "read":
    reader.onStep = { step in
        print(step)
        if step == "rate", reader.rates.count == 3 { reader.stop() }
        if step.hasPrefix("disconnected") { exit(step == "disconnected true" ? 0 : 1) }
    }
    reader.start()
case "keep":
    reader.onStep = { print($0) }
    reader.start()
case "serve":
    thermometer.onStep = { step in
        print(step)
        if step == "subscribed true", arguments.last == "one" { thermometer.stopAdvertising() }
    }
    thermometer.start()
case "measure":
    thermometerReader.onStep = { step in
        print(step)
        if step == "22.0" { thermometerReader.stop() }
        if step.hasPrefix("disconnected") { exit(step == "disconnected true" ? 0 : 1) }
    }
    thermometerReader.start()
case "echo":
    channelEcho.onStep = { print($0) }
    channelEcho.start()
default:
    print("usage: corebluetooth-walk read|keep [queue]|serve [one]|measure|echo")
    exit(64)
}
RunLoop.main.run()

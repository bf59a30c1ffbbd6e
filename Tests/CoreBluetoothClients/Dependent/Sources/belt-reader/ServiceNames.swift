// The names and the comments are those of programs, not of a library.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation, NeverForceUnwrap

// As it is written where the same sources are also for systems without Bluetooth.

#if canImport(CoreBluetooth)
import CoreBluetooth

/// The name of a service for the user.
func serviceName(_ uuid: CBUUID) -> String {
    uuid == CBUUID(string: "180D") ? "heart rate" : uuid.uuidString
}
#else
#error("CoreBluetooth cannot be imported.")
#endif

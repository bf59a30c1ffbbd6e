// A test of a class that was written for iOS imports this module alone. BareBLE is not exported: programs like to use
// the names of its types themselves.
@_exported public import BareBLETestKit
@_exported public import CoreBluetooth

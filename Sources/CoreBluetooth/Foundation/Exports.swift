// As on Apple's systems, a file that imports CoreBluetooth has Foundation and Dispatch as well.

@_exported public import Dispatch
@_exported public import Foundation

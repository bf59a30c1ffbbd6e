// A test of a daemon writes values of the usual services, and reads what was recorded.
@_exported public import BLECapture
@_exported public import BLEProfiles

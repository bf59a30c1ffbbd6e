// One import for users: BareBLE brings the byte formats along.
@_exported public import BLECore

import Testing

@Suite struct BLELinuxPlaceholderTests {}

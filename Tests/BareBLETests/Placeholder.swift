import Testing

@Suite struct BareBLEPlaceholderTests {}

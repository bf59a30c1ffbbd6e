import Testing

@Suite struct BareBLETestKitPlaceholderTests {}

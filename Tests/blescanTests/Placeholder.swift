import Testing

@Suite struct BlescanPlaceholderTests {}

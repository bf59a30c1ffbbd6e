package import Testing

/// Expects a hint about an adapter, which does not blame the disk.
package func expectNoFile(_ hint: String?, sourceLocation: SourceLocation = #_sourceLocation) {
    for word in ["disk", "file system"] {
        #expect(hint?.contains(word) == false, sourceLocation: sourceLocation)
    }
}

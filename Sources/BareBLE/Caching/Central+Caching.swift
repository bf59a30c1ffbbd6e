internal import BLECore
internal import BLELinux
internal import Logging

extension Central {
    /// The policy for a link to `peer`; reads the peer's file, off the event loop.
    func cachePolicy(for peer: PeerID, _ options: ConnectOptions) async -> CachePolicy {
        var policy = CachePolicy(options)
        guard let path = configuration.cacheDirectory ?? configuration.stateStore?.directory else { return policy }
        let directory = GATTCacheDirectory(path)
        guard let file = directory.file(for: peer) else { return policy }
        let logger = configuration.logger
        // Elsewhere: a task that runs on the event loop would wait for the disk there.
        if policy.cache == nil {
            policy.cache = await loop.elsewhere { Self.load(file, logger: logger) }
        }
        policy.store = { [loop] cache in
            await loop.elsewhere { Self.save(cache, for: peer, in: directory, logger: logger) }
        }
        return policy
    }

    /// A file that cannot be used is as good as none; it is said once, because it is written anew.
    private static func load(_ file: GATTCacheFile, logger: Logger) -> GATTCache? {
        do {
            return try file.load()
        } catch {
            logger.warning("a cache is not used", metadata: ["reason": "\(error)"])
            return nil
        }
    }

    private static func save(
        _ cache: GATTCache, for peer: PeerID, in directory: GATTCacheDirectory, logger: Logger
    ) {
        do {
            try directory.save(cache, for: peer)
        } catch {
            logger.warning("a cache could not be written", metadata: ["reason": "\(error)"])
        }
    }
}

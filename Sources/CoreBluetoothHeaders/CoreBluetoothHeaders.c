// The target is a map of modules, see include; the package manager needs a file to compile.

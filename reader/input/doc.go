// Package input finds the inputs of a load. Expand takes arguments as users type them (files, folders, globs with **, -
// for standard input, @list manifests, http, oss and s3 addresses) and returns items in a fixed order. An item can be
// read from its start or, if its source has ranges, at any offset by many readers at once. It gives exactly the bytes
// that it had when found, or an error that names it, never a short or mixed read. No secret of an address is shown. The
// package does not know formats, compression or tables.
package input

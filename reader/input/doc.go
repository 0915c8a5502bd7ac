// Package input finds the inputs of a load. Expand takes arguments (files, folders, globs with **, - for standard
// input, @list manifests, http, oss and s3 addresses) and returns items in a fixed order. An item can be read from its
// start or, with ranges, at any offset by many readers. A reader gets exactly the bytes that the item had when it was
// found, or an error that names the item. Secrets in addresses are never shown.
package input

// Package archive reads an archive of a table as the source of a load. New makes a source.Origin of a manifest: each part is a frozen, wide
// source. Open compares all parts with the manifest before it returns them, and a reading fails in place of its end if a part was
// changed meanwhile.
//
// This package carries no compatibility promise: only the module's root package does.
package archive

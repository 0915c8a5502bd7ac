// Package profile resolves named profiles, each of an endpoint, an instance and access keys. Find takes endpoint and
// instance from environment variables that end in the name or from tsimport's file of profiles. Profile.Keys takes the
// keys from such variables or from a profile of the vendor's command line. Keys are never shown or written.
package profile

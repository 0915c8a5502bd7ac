// Package profile resolves named profiles of an endpoint, an instance and access keys. Find takes endpoint and instance
// from environment variables that end with the name, or from tsimport's file of profiles. Keys takes the keys from such
// variables, or from a profile in the file of the vendor's command line. Keys are never shown or written.
package profile

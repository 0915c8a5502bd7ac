// Package storetest is a server of objects in memory that speaks the parts of S3 and OSS used by this module. New makes
// one for clients of package objectstore. It verifies no signatures. Memory is a store without a server.
package storetest

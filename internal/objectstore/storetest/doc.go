// Package storetest is a server of objects in memory that speaks the parts of S3 and OSS used by this module. New makes
// one; tests reach it at its URL with the clients of package objectstore. It verifies no signatures. Memory is a store
// of objects without a server.
package storetest

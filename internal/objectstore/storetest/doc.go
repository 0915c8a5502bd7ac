// Package storetest serves objects from memory through the parts of the S3 and OSS protocols that this module uses. New
// starts a server for clients of package objectstore. It verifies no signatures. Memory is a store without a server.
package storetest

// Package storetest serves objects in memory by the parts of S3 and OSS that this module uses. New starts a server for
// clients of package objectstore. It verifies no signatures. Memory is a store without a server.
package storetest

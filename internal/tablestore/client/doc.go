// Package client is the connection to Tablestore: a target comes in; the official SDK's client for it goes out, and a
// connection for requests whose bytes are made elsewhere; errors are sorted into classes, tables created and described,
// their partitions too. It promises that every request carries the run's context, that nothing is repeated that may have
// been applied, and that no secret appears in an error. It knows nothing of rows.
package client

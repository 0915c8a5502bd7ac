// Package client is the connection to Tablestore: a target comes in, the official SDK's client for it goes out, its
// errors sorted into classes, its tables created and described, their partitions too. It promises that every request
// carries the run's context, that the SDK repeats nothing by itself, and that no secret appears in an error. It knows
// nothing of rows.
package client

// Package tabletest provides tests with an in-memory engine and its clients, and writes rows with the SDK. Only tests
// import it.
package tabletest

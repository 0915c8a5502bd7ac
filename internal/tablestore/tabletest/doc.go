// Package tabletest gives tests an engine in memory and clients of it, and writes rows through the SDK. Only tests
// import it.
package tabletest

// Package tabletest gives tests an engine in memory with clients, and writes rows with the SDK. Only tests import it.
package tabletest

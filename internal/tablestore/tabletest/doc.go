// Package tabletest gives tests an engine in memory and its clients, and writes rows by the SDK. Only tests import it.
package tabletest

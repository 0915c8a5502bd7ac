// Package tabletest gives tests an in-memory engine with clients, and writes rows with the SDK. Only tests import it.
package tabletest

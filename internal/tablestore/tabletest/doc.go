// Package tabletest gives tests an engine in memory and clients of it, and has rows written by the SDK. Only tests import it.
package tabletest

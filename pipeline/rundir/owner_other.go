//go:build !unix

package rundir

// CheckOwner refuses nothing: this system has no Unix owners.
func CheckOwner(string) error { return nil }

// CheckShared refuses nothing: this system has no Unix owners.
func CheckShared(string) error { return nil }

package source

// Lasting is an error that the same command would meet again: the input is damaged, or its server refuses the request. The input has to
// change, so the exit code is that of wrong usage.
type Lasting struct{ Err error }

func (l *Lasting) Error() string { return l.Err.Error() }
func (l *Lasting) Unwrap() error { return l.Err }

// Exit is the code of a command that ends so (exitcode.Usage).
func (l *Lasting) Exit() int { return 2 }

// StartOver is what to do about an attempt that cannot be resumed: its source, or what it has kept, is not what it was.
const StartOver = "start over with --fresh"

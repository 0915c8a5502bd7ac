package source

// Lasting is an error of a source that the same command would meet again: the input is damaged, or its server refuses what it is asked. It is
// the command's input that has to change, so its exit code is that of a wrong use.
type Lasting struct{ Err error }

func (l *Lasting) Error() string { return l.Err.Error() }
func (l *Lasting) Unwrap() error { return l.Err }

// Exit is the code of a command that ends so (exitcode.Usage).
func (l *Lasting) Exit() int { return 2 }

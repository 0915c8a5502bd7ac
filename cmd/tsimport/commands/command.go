package commands

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/reader/input"
)

// invocation tells where a command comes from: the command line, a job, or a run that is resumed or whose rejects are
// loaded.
type invocation struct {
	args  []string         // arguments after the program's name, as stored
	ofEnv []string         // names of the options set by the environment
	own   *options.Command // request of a command that was not typed, without this machine's values
	goOn  bool             // resume the run in the folder
	// mayChange permits starting a run over if it cannot be resumed because the command has changed.
	mayChange bool
	folder    string          // the run's folder, if not empty
	settings  *checkpoint.Job // holds the types for the load
	rejects   string          // folder of the run whose rejects are loaded

	within
	interrupts *interrupts
	show       *display
	ending     *ending // receives the command's result; may be nil
}

// within is the context of a command that is part of another; each field may be nil.
type within struct {
	session *session  // the loads of a job in one process
	plan    *loadPlan // the plan of the load itself, made instead of running
	task    *workTask // done instead of loading
	target  *target   // used instead of the options' target
	stdin   io.Reader // read instead of standard input
}

// kept returns the arguments to store in the run folder for a later run, or nil if they contain a secret.
func (in *invocation) kept() []string {
	if !slices.Equal(redactedAll(in.args), in.args) {
		return nil
	}
	return in.args
}

// command returns the command line to retype, without secrets.
func (in *invocation) command() string {
	return commandLine(append([]string{commandName()}, redactedAll(in.args)...))
}

func redactedAll(texts []string) (all []string) {
	for _, t := range texts {
		all = append(all, input.Redact(t))
	}
	return all
}

// commandName returns the name by which tsimport was called, or go run's command for its temporary binary.
func commandName() string {
	if strings.Contains(filepath.ToSlash(os.Args[0]), "/go-build") {
		return "go run ./cmd/tsimport"
	}
	return os.Args[0]
}

// commandLine joins a command and its arguments, which it quotes for a shell.
func commandLine(args []string) string { return args[0] + shellArgs(args[1:]) }

// shellArgs quotes arguments for a shell, with a space before each.
func shellArgs(args []string) (text string) {
	for _, a := range args {
		text += " " + suggest.Arg(a)
	}
	return text
}

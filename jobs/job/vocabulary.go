package job

import (
	"slices"

	"example.com/tsimport/pipeline/options"
)

// Vocabulary is the set of keys of a job file.
type Vocabulary struct {
	// Commands maps each command that a load can run to its keys, which are its options.
	Commands map[string][]*options.Option
	Target   []string
	// Refused maps flags that are not keys to their replacements.
	Refused map[string]string
}

// NewVocabulary returns the keys of all commands that a load can run.
func NewVocabulary() *Vocabulary {
	v := &Vocabulary{Commands: map[string][]*options.Option{}, Refused: map[string]string{}}
	for _, command := range commands {
		for _, o := range options.OfCommand(command) {
			if o.InJobs(command) {
				v.Commands[command] = append(v.Commands[command], o)
			} else if o.Instead != "" {
				v.Refused[o.Name] = o.Instead
			}
		}
	}
	for _, o := range options.Of(options.Reaching) {
		v.Target = append(v.Target, o.Name)
	}
	// The command takes the table of a copy as an argument, not as a flag.
	v.Commands[Copy] = append(v.Commands[Copy], &options.Option{Name: keyTable, Usage: "table to copy to"})
	return v
}

// The commands that a load can run. The first one is the default.
const (
	Load   = "load"
	Copy   = "copy"
	Sync   = "sync"
	Export = "export"
)

var commands = []string{Load, Copy, Sync, Export}

// The keys that are not flags.
const (
	keyFrom    = "from"
	keyAfter   = "after"
	keyExcept  = "except"
	keyCommand = "command"
	keyTable   = "table"
)

// key returns the command's key of this name, or nil if there is none.
func (v *Vocabulary) key(command, name string) *options.Option {
	for _, k := range v.Commands[command] {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// any returns the key of this name of any command, or nil if there is none.
func (v *Vocabulary) any(name string) *options.Option {
	for _, command := range commands {
		if k := v.key(command, name); k != nil {
			return k
		}
	}
	return nil
}

// names returns the names of a command's keys. If command is "", it returns those of all commands.
func (v *Vocabulary) names(command string) (names []string) {
	for _, c := range commands {
		if command != "" && c != command {
			continue
		}
		for _, k := range v.Commands[c] {
			if !slices.Contains(names, k.Name) {
				names = append(names, k.Name)
			}
		}
	}
	return names
}

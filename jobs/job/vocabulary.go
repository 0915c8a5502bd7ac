package job

import (
	"slices"

	"example.com/tsimport/pipeline/options"
)

// Vocabulary is the keys of a job file.
type Vocabulary struct {
	// Commands are the keys of each command that a load may be: its options.
	Commands map[string][]*options.Option
	// Target are the keys of the target.
	Target []string
	// Refused says of keys that are flags, but not keys, what to do instead.
	Refused map[string]string
}

// NewVocabulary has the options of the commands that a load may be.
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
	// An export and a copy name what they write otherwise.
	v.Commands[Copy] = append(v.Commands[Copy], &options.Option{Name: keyTable, Usage: "table to copy to"})
	return v
}

// Commands that a load may be. The first is what a load is that does not say.
const (
	Load   = "load"
	Copy   = "copy"
	Sync   = "sync"
	Export = "export"
)

var commands = []string{Load, Copy, Sync, Export}

// Keys that are not flags.
const (
	keyFrom    = "from"
	keyAfter   = "after"
	keyExcept  = "except"
	keyCommand = "command"
	keyTable   = "table"
)

// key returns a key of a command, nil if it has none of the name.
func (v *Vocabulary) key(command, name string) *options.Option {
	for _, k := range v.Commands[command] {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// any returns a key of any command.
func (v *Vocabulary) any(name string) *options.Option {
	for _, command := range commands {
		if k := v.key(command, name); k != nil {
			return k
		}
	}
	return nil
}

// names returns the names of the keys of a command, or of all without one.
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

package commands

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/pipeline/options"
)

const (
	helpColumns = 100 // width of a line of help
	flagColumns = 26  // width of a flag, before its text
	manyFlags   = 25  // commands with more flags show only the basic ones
	allFlags    = "all"
)

// helpAsked returns the words around --help, and the part that --help=PART names.
func helpAsked(args []string) (words []string, part string, asked bool) {
	for i, arg := range args[min(1, len(args)):] {
		switch name, value, _ := strings.Cut(arg, "="); {
		case arg == "--":
			return nil, "", false
		case name == "--help", name == "-help", name == "-h":
			return slices.Concat(args[1:i+1], args[i+2:]), value, true
		case i == 0 && arg == "help" && len(args) > 2:
			return args[2:], "", true
		}
	}
	return nil, "", false
}

func showHelp(app *cli.App, args []string, to io.Writer) (shown bool, err error) {
	words, part, asked := helpAsked(args)
	if asked && len(words) == 0 && part != "" {
		return true, usagef("--help=%s needs a command, as in tsimport load --help=%s", part, part)
	}
	if !asked || len(words) == 0 {
		return false, nil
	}
	command, name := findCommand(app.Commands, words[0]), words[0]
	for _, word := range words[1:] {
		if command == nil || findCommand(command.Subcommands, word) == nil {
			break
		}
		command, name = findCommand(command.Subcommands, word), name+" "+word
	}
	if command == nil {
		return false, nil
	}
	h := help{command: command, name: name, part: part}
	if err := h.choose(); err != nil {
		return true, err
	}
	_, err = io.WriteString(to, h.text())
	return true, err
}

type help struct {
	command       *cli.Command
	name, part    string
	groups        []string              // groups with flags, most important first
	flags         map[string][]cli.Flag // flags by group
	shown, hidden int
	b             strings.Builder
}

func (h *help) choose() error {
	h.flags = map[string][]cli.Flag{}
	for _, f := range h.command.VisibleFlags() {
		group := f.(cli.CategorizableFlag).GetCategory() // all flags have groups
		if h.flags[group] == nil {
			h.groups = append(h.groups, group)
		}
		h.flags[group] = append(h.flags[group], f)
	}
	slices.SortStableFunc(h.groups,
		func(a, b string) int { return slices.Index(options.Groups, a) - slices.Index(options.Groups, b) })
	many := len(h.command.VisibleFlags()) > manyFlags
	names := h.groupNames()
	if h.part != "" && h.part != allFlags && !slices.Contains(names, h.part) {
		return usagef("--help=%s: want %s or one of %s%s", h.part, allFlags, strings.Join(names, ", "),
			suggest.Hint(h.part, names))
	}
	for group, flags := range h.flags {
		h.flags[group] = slices.DeleteFunc(flags, func(f cli.Flag) bool {
			o := cmp.Or(options.For(h.command.Name, f.Names()[0]), options.Find(f.Names()[0]))
			drop := many && h.part == "" && group != "" && !(o != nil && o.Basic) || h.part != "" && h.part != allFlags &&
				h.part != groupName(group)
			if drop {
				h.hidden++
			}
			return drop
		})
		h.shown += len(h.flags[group])
	}
	return nil
}

// groupName returns a group's name in --help=PART, the first word of its title.
func groupName(title string) string {
	word, _, _ := strings.Cut(strings.ToLower(title), " ")
	return strings.TrimRight(word, ",:")
}

func (h *help) groupNames() (names []string) {
	for _, group := range h.groups {
		if group != "" {
			names = append(names, groupName(group))
		}
	}
	return names
}

func (h *help) text() string {
	h.lines("tsimport " + h.name + " - " + h.command.Usage)
	h.b.WriteByte('\n')
	usage := "usage: tsimport " + h.name
	if len(h.command.Subcommands) > 0 {
		usage += " [COMMAND]"
	}
	h.lines(strings.TrimSpace(usage + " [options] " + h.command.ArgsUsage))
	if h.part == "" && h.command.Description != "" {
		h.b.WriteByte('\n')
		for _, paragraph := range strings.SplitAfter(strings.ReplaceAll(h.command.Description, ".\n", ".\x00"), "\x00") {
			h.lines(strings.ReplaceAll(strings.TrimSuffix(paragraph, "\x00"), "\n", " "))
		}
	}
	for i, c := range h.command.Subcommands {
		if i == 0 {
			h.b.WriteString("\nCommands:\n")
		}
		h.row(c.Name, c.Usage)
	}
	for _, group := range h.groups {
		if len(h.flags[group]) == 0 {
			continue
		}
		h.b.WriteByte('\n')
		if group != "" {
			h.lines(group + ":")
		}
		for _, f := range h.flags[group] {
			name, usage, _ := strings.Cut(f.String(), "\t")
			h.row(name, usage)
		}
	}
	if h.hidden > 0 {
		h.b.WriteByte('\n')
		h.lines(fmt.Sprintf("%d of %d options. --help=all shows all, --help=GROUP those of a group: %s.", h.shown,
			h.shown+h.hidden, strings.Join(h.groupNames(), ", ")))
	}
	if rare := h.rare(); h.part == allFlags && len(rare) > 0 {
		h.b.WriteByte('\n')
		h.lines("For rare needs: " + strings.Join(rare, ", ") + ".")
	}
	return h.b.String()
}

// rare returns the flags that no list shows.
func (h *help) rare() (names []string) {
	for _, f := range h.command.Flags {
		name := f.Names()[0]
		if o := options.For(h.command.Name, name); o != nil && o.Rare(h.command.Name) {
			names = append(names, "--"+name)
		}
	}
	return names
}

func (h *help) lines(text string) {
	for _, line := range fold(text, helpColumns) {
		fmt.Fprintln(&h.b, line)
	}
}

func (h *help) row(name, usage string) {
	lines := fold(usage, helpColumns-flagColumns)
	if utf8.RuneCountInString(name) > flagColumns-4 {
		fmt.Fprintf(&h.b, "  %s\n", name)
		name = ""
	}
	for _, line := range lines {
		fmt.Fprintf(&h.b, "  %-*s%s\n", flagColumns-2, name, line)
		name = ""
	}
}

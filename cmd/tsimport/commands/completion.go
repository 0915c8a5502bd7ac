package commands

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/pipeline/options"
)

// generateCompletion is the argument by which a shell requests completions.
const generateCompletion = "--generate-bash-completion"

// completions are the scripts for shells. They request completions in the same way as the library's scripts.
var completions = map[string]string{
	"bash": `_tsimport() {
  local cur="${COMP_WORDS[COMP_CWORD]}" words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  [[ "$cur" == -* ]] && words+=("$cur")
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o bashdefault -o default -F _tsimport tsimport
`,
	"zsh": `#compdef tsimport
_tsimport() {
  local -a opts asked
  asked=("${(@)words[1,CURRENT-1]}")
  [[ "${words[CURRENT]}" == -* ]] && asked+=("${words[CURRENT]}")
  opts=("${(@f)$("${asked[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n "${opts[1]}" ]]; then compadd -a opts; else _files; fi
}
compdef _tsimport tsimport
`,
	"powershell": `Register-ArgumentCompleter -Native -CommandName tsimport -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $asked = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
  if ($wordToComplete -and -not $wordToComplete.StartsWith("-")) { $asked = @($asked | Select-Object -SkipLast 1) }
  & tsimport @asked --generate-bash-completion 2>$null | Where-Object { $_ -like "$wordToComplete*" } |
    ForEach-Object { [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_) }
}
`,
}

func completionCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name: "completion", Usage: "print a script that completes commands and flags in bash, zsh, fish or powershell",
		ArgsUsage: "SHELL",
		Description: "bash:        source <(tsimport completion bash)\nzsh:         source <(tsimport completion zsh)\n" +
			"fish:        tsimport completion fish | source\npowershell:  tsimport completion powershell | Out-String | " +
			"Invoke-Expression",
		Action: in.act(func(c *call) error {
			shell := c.Args().First()
			script := completions[shell]
			switch {
			case c.NArg() != 1:
				return usagef("completion takes one shell: bash, zsh, fish or powershell")
			case shell == "fish":
				var err error
				if script, err = c.App.ToFishCompletion(); err != nil {
					return fmt.Errorf("generate the fish script: %w", err)
				}
			case script == "":
				return usagef("completion %q: want bash, zsh, fish or powershell", shell)
			}
			_, err := fmt.Fprint(results(c), script)
			return err
		}),
	}
}

func manCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the manual page, in the format of man or Markdown",
		Description: "tsimport man > /usr/local/share/man/man1/tsimport.1",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "markdown", Usage: "print it as Markdown"}},
		Action: in.act(func(c *call) error {
			page, err := "", error(nil)
			if c.Bool("markdown") {
				page, err = c.App.ToMarkdown()
			} else {
				page, err = c.App.ToManWithSection(1)
			}
			if err != nil {
				return fmt.Errorf("generate the manual page: %w", err)
			}
			_, err = fmt.Fprint(results(c), page)
			return err
		}),
	}
}

// completeBasic completes a bare dash with the basic flags only, because a long list helps no one.
func completeBasic(app *cli.App, args []string, to io.Writer) bool {
	words := args[1 : len(args)-1]
	if len(words) < 2 || strings.Trim(words[len(words)-1], "-") != "" {
		return false
	}
	command := findCommand(app.Commands, words[0])
	if command == nil {
		return false
	}
	var basic, all []string
	for _, f := range command.VisibleFlags() {
		name := f.Names()[0]
		all = append(all, "--"+name)
		if o := options.For(command.Name, name); o != nil && o.Basic {
			basic = append(basic, "--"+name)
		}
	}
	if len(basic) > 0 {
		all = basic
	}
	fmt.Fprintln(to, strings.Join(all, "\n"))
	return true
}

// completeValue completes the value of the last flag, if its values are known.
func completeValue(app *cli.App, args []string, to io.Writer) bool {
	words := args[1 : len(args)-1]
	if len(words) < 2 || findCommand(app.Commands, words[0]) == nil {
		return false
	}
	name, dashed := strings.CutPrefix(words[len(words)-1], "--")
	o := cmp.Or(options.For(words[0], name), options.Find(name))
	takes := valueFlags(findCommand(app.Commands, words[0]).Flags)[name]
	if !dashed || !takes || o == nil || o.Values == nil {
		return false
	}
	fmt.Fprintln(to, strings.Join(o.Values, "\n"))
	return true
}

// asksForCompletion reports whether a shell requests completions; then nothing is run or validated.
func asksForCompletion(args []string) bool {
	return len(args) > 0 && strings.EqualFold(args[len(args)-1], generateCompletion)
}

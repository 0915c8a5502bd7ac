package main

import (
	"os"

	"example.com/tsimport/cmd/tsimport/commands"
)

func main() {
	os.Exit(commands.Run(os.Args, os.Stdout, os.Stderr))
}

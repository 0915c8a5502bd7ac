package main

import (
	"os"

	"tsimport/internal/commands"
)

func main() {
	os.Exit(commands.Run(os.Args, os.Stdout, os.Stderr))
}

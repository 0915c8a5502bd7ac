package main

import (
	"os"

	"example.com/tsimport/beam/runner"
	"example.com/tsimport/beam/worker"
	"example.com/tsimport/cmd/tsimport/commands"
)

func main() {
	if worker.Called(os.Args) {
		os.Exit(worker.Main(os.Args, os.Stderr))
	}
	os.Exit(commands.RunWith(runner.Offer(), os.Args, os.Stdout, os.Stderr))
}

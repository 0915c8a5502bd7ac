package main

import (
	"os"

	"tsimport/beam/runner"
	"tsimport/beam/worker"
	"tsimport/internal/commands"
)

func main() {
	if worker.Called(os.Args) {
		os.Exit(worker.Main(os.Args, os.Stderr))
	}
	os.Exit(commands.RunWith(runner.Offer(), os.Args, os.Stdout, os.Stderr))
}

package main

import (
	"os"

	"tsimport/beam/engine"
	"tsimport/beam/worker"
	"tsimport/internal/commands"
)

func main() {
	if worker.Called(os.Args) {
		os.Exit(worker.Main(os.Args, os.Stderr))
	}
	os.Exit(commands.RunWith(engine.Offer(), os.Args, os.Stdout, os.Stderr))
}

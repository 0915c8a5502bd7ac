package commands

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// greetCommand is the smallest command: this file, and its line among the commands of newApp.
func greetCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "greet",
		Usage: "greet a user",
		Action: in.act(func(c *call) error {
			_, err := fmt.Fprintf(results(c), "hello, %s\n", c.Args().First())
			return err
		}),
	}
}

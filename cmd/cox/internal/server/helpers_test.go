package server_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/server"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/tools"
)

// newFake is a server for the commands that are tested here.
func newFake(t *testing.T) *clitest.Server {
	t.Helper()
	return clitest.NewServer(t, clitest.Root(server.Commands, tools.Commands))
}

// coxAt runs a command of cox against a server; "" leaves the choice to the command.
func coxAt(t *testing.T, address, stdin string, args ...string) clitest.Ran {
	t.Helper()
	return clitest.Run(t, clitest.Root(server.Commands, tools.Commands), address, stdin, args...)
}

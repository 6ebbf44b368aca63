package policy_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/policy"
)

// newFake is a server for the commands that are tested here.
func newFake(t *testing.T) *clitest.Server {
	t.Helper()
	return clitest.NewServer(t, clitest.Root(policy.Commands))
}

// coxAt runs a command of cox against a server.
func coxAt(t *testing.T, server, stdin string, args ...string) clitest.Ran {
	t.Helper()
	return clitest.Run(t, clitest.Root(policy.Commands), server, stdin, args...)
}

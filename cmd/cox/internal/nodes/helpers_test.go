package nodes_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/nodes"
)

// newFake is a server for the commands that are tested here.
func newFake(t *testing.T) *clitest.Server {
	t.Helper()
	return clitest.NewServer(t, clitest.Root(nodes.Commands))
}

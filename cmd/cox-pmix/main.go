// Command cox-pmix is the PMIx server of one step on one node: it loads the machine's
// libpmix, and Open MPI and other PMIx programs of the step connect to it.
//
// It is a program of its own so that a fault of the library takes down this process and
// nothing else, and so that the other programs need not be linked for loading C libraries.
// The node of a step starts it, as the job's user, when the first program connects (package
// agent/step/node). It is not for users: descriptor 0 is a stream of frames to the node, of
// which the first message holds the orders (pmix.Orders), and descriptor 1 the socket at
// which the programs arrive. "cox-pmix version" prints the version of the library.
//
// Exit status: 0 after its connection to the node has ended; 1 if the library cannot be used,
// with the reason in a frame MsgRefused. Anything else is a crash of the library.
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/step/pmix"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == pmix.VersionWord {
		os.Exit(printVersion())
	}
	if len(os.Args) == 3 && os.Args[1] == pmix.RemoveWord && strings.HasPrefix(filepath.Base(os.Args[2]), pmix.DirPrefix) {
		if err := os.RemoveAll(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run())
}

// printVersion prints the version of the library that would be used.
func printVersion() int {
	version, err := libraryVersion()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(version)
	return 0
}

// run serves the step and gives the exit status.
func run() int {
	control, err := net.FileConn(os.NewFile(pmix.ControlFD, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "cox-pmix serves the steps of srun and is started by cox; see docs/reference/mpi.md")
		return 1
	}
	link := wire.NewLink(control)
	if err := serveStep(link); err != nil {
		_ = link.Send(wire.Frame{Kind: wire.MsgRefused, Body: []byte(err.Error())})
		return 1
	}
	return 0
}

// serveStep reads the orders, starts the server and serves until the node closes the link.
func serveStep(link *wire.Link) error {
	f, err := link.Receive()
	if err != nil {
		return fmt.Errorf("no orders: %w", err)
	}
	var o pmix.Orders
	if err := f.Decode(&o); err != nil {
		return err
	}
	programs, err := net.FileListener(os.NewFile(pmix.ListenFD, "programs"))
	if err != nil {
		return fmt.Errorf("the socket of the programs: %w", err)
	}
	s, err := startServer(&o, &pmix.Sender{Link: link})
	if err != nil {
		return err
	}
	defer s.close()
	if err := link.Send(wire.Frame{Kind: wire.MsgHeld}); err != nil {
		return nil
	}
	go forwardPrograms(programs, s.address)
	var in pmix.Joiner
	for {
		f, err := link.Receive()
		if err != nil {
			return nil
		}
		m, ok, err := in.Add(f)
		if err != nil {
			return err
		}
		if ok {
			s.handle(m)
		}
	}
}

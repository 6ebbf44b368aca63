// Package main plays the vendor of GPUs on a node of a lab, for tests only: a plugin of the
// kubelet that has devices which are names and nothing else.
//
//	devices plugin FILE        the kubelet's device plugins: devices by count
//	devices claims FILE        dynamic resource allocation: devices that claims are given
//
// It runs on the node, whose /var/lib/kubelet is the kubelet's. FILE is a Stock in JSON, read
// at the start and on SIGHUP. What it does it prints, a line each.
//
// It is a module of its own, so that none of this is in the product's graph of modules.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Stock are the devices of a node.
type Stock struct {
	Resource string // by which pods ask: "nvidia.com/gpu"; of claims: the driver's name
	Devices  []Device
	API      struct{ Server, CA, Cert, Key string } // of claims: where and as whom they are read
}

// Device is a name.
type Device struct {
	ID  string // at most 63 characters
	Ill bool
}

// stock is the file as it was read last. It is safe for concurrent use.
type stock struct {
	mu      sync.Mutex
	now     Stock
	changed chan struct{} // closed when there is a newer one
}

func (s *stock) read(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var fresh Stock
	if err := json.Unmarshal(text, &fresh); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
	}
	s.now, s.changed = fresh, make(chan struct{})
	return nil
}

func (s *stock) get() (Stock, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.changed
}

func main() {
	kinds := map[string]func(*stock) error{"plugin": plugin, "claims": claims}
	if len(os.Args) != 3 || kinds[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: devices plugin|claims FILE")
		os.Exit(2)
	}
	s := new(stock)
	if err := s.read(os.Args[2]); err != nil {
		fail(err)
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	go func() {
		for range again {
			if err := s.read(os.Args[2]); err != nil {
				fail(err)
			}
		}
	}()
	if err := kinds[os.Args[1]](s); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "devices:", err)
	os.Exit(1)
}

// listen serves on a socket of the node, in the place of one that another life left there.
func listen(name string, register func(*grpc.Server)) error {
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	register(s)
	go func() { fail(s.Serve(l)) }()
	return nil
}

// dial is a connection to a socket of the node.
func dial(name string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+name, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// identity tells one file from another of the same name; 0: there is none.
func identity(name string) uint64 {
	var st syscall.Stat_t
	if syscall.Stat(name, &st) != nil {
		return 0
	}
	return st.Ino ^ uint64(st.Ctim.Nano()) //nolint:gosec // any number does
}

const pause = 100 * time.Millisecond

// say prints what was done, in one write.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func sorted(ids []string) []string {
	out := slices.Clone(ids)
	slices.Sort(out)
	return out
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ebitengine/purego"

	"github.com/coxswain-sched/coxswain/agent/step/pmix"
)

// server is libpmix as the server of the ranks of this node.
type server struct {
	lib      *library
	orders   *pmix.Orders
	out      *pmix.Sender
	dir      string // of the server and of the programs; its own
	address  string // at which the library listens
	arena    arena  // of what the library was given for good
	pending  pending
	haveData uintptr // sendWanted, for the library
}

// startServer loads the library, starts the server and registers the step with it.
func startServer(o *pmix.Orders, out *pmix.Sender) (s *server, err error) {
	if o.Self < 0 || o.Self >= len(o.Nodes) || len(o.Nodes[o.Self].Ranks) == 0 {
		return nil, errors.New("the orders of the PMIx server name no rank of this node")
	}
	s = &server{orders: o, out: out, pending: newPending()}
	if s.lib, err = loadLibrary(libraryNames(o.Program, o.Dir), o.InImage); err != nil {
		return nil, err
	}
	if o.Version != 0 && o.Version != s.lib.major() {
		return nil, fmt.Errorf("--mpi=pmix_v%d: this node has libpmix %s; say --mpi=pmix", o.Version, s.lib.version)
	}
	s.dir = o.TempDir
	if err = os.Mkdir(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("a directory for the PMIx server: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(s.dir)
		}
	}()
	info := s.arena.infos([]info{
		{keyServerSpace, o.Server},
		{keyServerRank, rank(o.Self)},
		{keyHostName, o.Nodes[o.Self].Name},
		{keyServerTmp, s.dir},
		{keySystemTmp, s.dir},
	})
	if err := s.lib.failed("start the server", s.lib.serverInit(addressOf(s.module()), addressOf(info), len(info)/sizeOfInfo)); err != nil {
		return nil, err
	}
	s.lib.handleEvents(0, 0, 0, 0, purego.NewCallback(s.eventHappened), 0, 0)
	if err := s.registerStep(); err != nil {
		return nil, err
	}
	if s.address, err = s.findAddress(); err != nil {
		return nil, err
	}
	return s, nil
}

// close ends the server. The programs have ended.
func (s *server) close() {
	s.lib.serverFinalize()
	_ = os.RemoveAll(s.dir)
}

// registerStep tells the library of the step and of its ranks on this node.
func (s *server) registerStep() error {
	list, err := s.describeStep()
	if err != nil {
		return err
	}
	local := s.orders.Nodes[s.orders.Self].Ranks
	done, answers := s.pending.awaitStatus()
	space := s.arena.alloc(sizeOfSpace)
	copy(space[:sizeOfSpace-1], s.orders.Space)
	infos := s.arena.infos(list)
	if err := s.registered(s.lib.registerSpace(addressOf(space), int32(len(local)), addressOf(infos), len(list), done, 0), answers); err != nil {
		return err
	}
	for _, r := range local {
		proc := s.arena.proc(s.orders.Space, r)
		if err := s.registered(s.lib.registerClient(proc, uint32(os.Getuid()), uint32(os.Getgid()), 0, done, 0), answers); err != nil {
			return err
		}
	}
	return nil
}

// registered waits for the answer to a registration.
func (s *server) registered(status int32, answers <-chan int32) error {
	if status == 0 {
		status = <-answers
	}
	return s.lib.failed("register the step", status)
}

// describeStep lists what the library has to know of the step.
func (s *server) describeStep() ([]info, error) {
	o := s.orders
	var names, maps []string
	for _, n := range o.Nodes {
		names = append(names, n.Name)
		maps = append(maps, joinRanks(n.Ranks))
	}
	nodes, err := s.encodeMap(s.lib.generateRegex, strings.Join(names, ","))
	if err != nil {
		return nil, err
	}
	procs, err := s.encodeMap(s.lib.generatePPN, strings.Join(maps, ";"))
	if err != nil {
		return nil, err
	}
	tasks, local := uint32(o.Tasks()), o.Nodes[o.Self].Ranks
	list := []info{
		{keyJobID, o.Space},
		{keyUniverse, tasks},
		{keyJobSize, tasks},
		{keyMaxProcs, tasks},
		{keyNumNodes, uint32(len(o.Nodes))},
		{keyNumApps, uint32(len(o.Apps))},
		{keyLocalSize, uint32(len(local))},
		{keyNodeSize, uint32(len(local))},
		{keyLocalPeers, joinRanks(local)},
		{keyLocalLeader, rank(local[0])},
		{keyNodeMap, nodes},
		{keyProcMap, procs},
		{keySpawned, false},
		{keyTmpDir, s.dir},
		{keySpaceDir, filepath.Join(s.dir, o.Space)},
		{keyTmpCleaned, true},
	}
	if len(o.Apps) == 1 {
		list = append(list, info{keyAppSize, tasks})
	} else {
		for i, a := range o.Apps {
			list = append(list, info{keyAppArray, []info{{keyAppNumber, uint32(i)}, {keyAppSize, uint32(a.Tasks)}, {keyAppLeader, rank(a.First)}}})
		}
	}
	for n, node := range o.Nodes {
		for i, r := range node.Ranks {
			list = append(list, info{keyProcData, s.describeRank(n, i, r)})
		}
	}
	return list, nil
}

// describeRank lists what is known of one rank, the i-th of node n.
func (s *server) describeRank(n, i, r int) []info {
	app := slices.IndexFunc(s.orders.Apps, func(a pmix.LayoutApp) bool { return r >= a.First && r < a.First+a.Tasks })
	app = max(app, 0)
	out := []info{
		{keyRank, rank(r)},
		{keyAppNumber, int32(app)},
		{keyGlobalRank, rank(r)},
		{keyAppRank, rank(r - s.orders.Apps[app].First)},
		{keyLocalRank, uint16(i)},
		{keyNodeRank, uint16(i)},
		{keyNodeID, uint32(n)},
		{keyHostName, s.orders.Nodes[n].Name},
		{keySpawned, false},
	}
	if n == s.orders.Self {
		out = append(out, info{keyProcDir, filepath.Join(s.dir, s.orders.Space, strconv.Itoa(r))})
	}
	return out
}

// encodeMap has the library encode a list.
func (s *server) encodeMap(encode func(uintptr, *uintptr) int32, list string) (regex, error) {
	out := new(uintptr)
	err := s.lib.failed("encode "+list, encode(s.arena.text(list), out))
	return regex(*out), err
}

// joinRanks is "0,1,2".
func joinRanks(ranks []int) string {
	words := make([]string, len(ranks))
	for i, r := range ranks {
		words[i] = strconv.Itoa(r)
	}
	return strings.Join(words, ",")
}

// findAddress reads from the environment that the library would give a program where it
// listens.
func (s *server) findAddress() (string, error) {
	env := new(uintptr)
	if err := s.lib.failed("describe the server", s.lib.setupFork(s.arena.proc(s.orders.Space, s.orders.Nodes[s.orders.Self].Ranks[0]), env)); err != nil {
		return "", err
	}
	for i := uintptr(0); ; i += 8 {
		at := readPointer(*env + i)
		if at == 0 {
			return "", errors.New("libpmix does not say where it listens")
		}
		v := textAt(at)
		if _, address, ok := strings.Cut(v, ";tcp4://"); ok && strings.HasPrefix(v, "PMIX_SERVER_URI") {
			address, _, _ = strings.Cut(address, ";")
			return address, nil
		}
	}
}

package srun

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// PMI-1 is how MPICH, Intel MPI and their kin meet: every task has a socket, named
// by PMI_FD, on which it writes commands of one line and reads answers of one line
// (Flux RFC 13 describes the protocol). The node only passes commands on; srun keeps
// the one table of keys and values and counts who has come to a barrier. pmi2.go has
// PMI-2 on the same socket.

// Bounds that programs are told of.
const (
	pmiKeyMax = 256
)

// pmiServer is srun's side: keys and values, and the barrier.
type pmiServer struct {
	info   *step.Info
	answer func(rank int, bytes string)
	abort  func(rank, code int, text string)
	say    func(text string) // to the user
	nodes  []int             // by rank

	mu      sync.Mutex
	values  map[string]string
	waiting map[int]func() // ranks in the barrier, and how each is let go on
	spawn   map[int]bool
	wanted  map[string][]pmi2Call // that wait for a value of their node, by key
	ring    map[int]pmi2Call      // that have come to a ring
}

// publishedKey is before the names that programs publish, in the table of values.
const publishedKey = "published\x00"

// spawnRefused is the answer to MPI_Comm_spawn.
const spawnRefused = "MPI_Comm_spawn is not served in steps of srun; start the program with mpirun inside the job, or start all ranks at once"

// newPMIServer serves the tasks of a step. answer, abort and say are called without a
// lock, from several goroutines.
func newPMIServer(i *step.Info, answer func(rank int, bytes string), abort func(rank, code int, text string), say func(string)) *pmiServer {
	p := &pmiServer{
		info: i, answer: answer, abort: abort, say: say, nodes: nodesOfRanks(i),
		values: make(map[string]string), waiting: make(map[int]func()), spawn: make(map[int]bool), wanted: make(map[string][]pmi2Call),
	}
	p.values["PMI_process_mapping"] = processMapping(i)
	p.values["universeSize"] = strconv.Itoa(i.Tasks)
	return p
}

// answerLine answers a command of PMI-1.
func (p *pmiServer) answerLine(rank int, line string) { p.answer(rank, line+"\n") }

// kvsName is the name of the table of values.
func (p *pmiServer) kvsName() string { return fmt.Sprintf("kvs_%d", p.info.Step) }

// handleCommand answers one line of a task.
func (p *pmiServer) handleCommand(rank int, line string) {
	line = strings.TrimRight(line, "\n")
	word := pmiWords(line)
	if p.inSpawn(rank, line, word) {
		return
	}
	switch word["cmd"] {
	case "init":
		if word["pmi_version"] == "2" {
			p.answerLine(rank, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0")
			return
		}
		p.answerLine(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
	case "get_maxes":
		p.answerLine(rank, fmt.Sprintf("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d rc=0", pmiKeyMax, pmiKeyMax, wire.PMIValueMax))
	case "get_appnum":
		p.answerLine(rank, fmt.Sprintf("cmd=appnum appnum=%d rc=0", p.appNumber(rank)))
	case "get_my_kvsname":
		p.answerLine(rank, "cmd=my_kvsname kvsname="+p.kvsName()+" rc=0")
	case "get_universe_size":
		p.answerLine(rank, fmt.Sprintf("cmd=universe_size size=%d rc=0", p.info.Tasks))
	case "put":
		p.putValue(rank, word)
	case "get":
		p.getValue(rank, word)
	case "barrier_in":
		p.enterBarrier(rank, func() { p.answerLine(rank, "cmd=barrier_out rc=0") })
	case "finalize":
		p.answerLine(rank, "cmd=finalize_ack rc=0")
	case "abort":
		code, _ := strconv.Atoi(word["exitcode"])
		p.abort(rank, code, word["error_msg"])
	case "publish_name":
		p.setValue(publishedKey+word["service"], word["port"])
		p.answerLine(rank, "cmd=publish_result info=ok rc=0")
	case "unpublish_name":
		p.removeValue(publishedKey + word["service"])
		p.answerLine(rank, "cmd=unpublish_result info=ok rc=0")
	case "lookup_name":
		if port, ok := p.findValue(publishedKey + word["service"]); ok {
			p.answerLine(rank, "cmd=lookup_result info=ok rc=0 port="+port)
		} else {
			p.answerLine(rank, "cmd=lookup_result info=server_not_found rc=-1")
		}
	default:
		p.answerLine(rank, "cmd="+word["cmd"]+"_result rc=-1 msg=unknown_command")
	}
}

// inSpawn swallows the lines of a spawn request and refuses it at its end.
func (p *pmiServer) inSpawn(rank int, line string, word map[string]string) bool {
	p.mu.Lock()
	in := p.spawn[rank] || word["mcmd"] == "spawn"
	p.spawn[rank] = in && line != "endcmd"
	p.mu.Unlock()
	if in && line == "endcmd" {
		p.refuseSpawn(rank)
		p.answerLine(rank, "cmd=spawn_result rc=-1 msg=not_served")
	}
	return in
}

func (p *pmiServer) putValue(rank int, word map[string]string) {
	p.setValue(word["key"], word["value"])
	p.answerLine(rank, "cmd=put_result rc=0")
}

func (p *pmiServer) getValue(rank int, word map[string]string) {
	value, ok := p.findValue(word["key"])
	if !ok {
		p.answerLine(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown")
		return
	}
	p.answerLine(rank, "cmd=get_result rc=0 msg=success value="+value)
}

// enterBarrier lets every task go on once all have come.
func (p *pmiServer) enterBarrier(rank int, goOn func()) {
	p.mu.Lock()
	p.waiting[rank] = goOn
	var all map[int]func()
	if len(p.waiting) == p.info.Tasks {
		all, p.waiting = p.waiting, make(map[int]func())
	}
	p.mu.Unlock()
	for _, goOn := range all {
		goOn()
	}
}

// setValue enters a value.
func (p *pmiServer) setValue(key, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.values[key] = value
}

// findValue is a value, if there is one.
func (p *pmiServer) findValue(key string) (value string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	value, ok = p.values[key]
	return value, ok
}

// removeValue takes a value away.
func (p *pmiServer) removeValue(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.values, key)
}

// refuseSpawn tells the user why a program cannot start others.
func (p *pmiServer) refuseSpawn(rank int) {
	p.say(fmt.Sprintf("error: task %d: %s", rank, spawnRefused))
}

// appNumber is the number of the program that a rank runs.
func (p *pmiServer) appNumber(rank int) int {
	for i, c := range p.info.Components {
		if rank >= c.First && rank < c.First+c.Tasks {
			return i
		}
	}
	return 0
}

// pmiWords reads "name=value name=value"; the value of the last one may hold blanks
// if it is a value to put.
func pmiWords(line string) map[string]string {
	out := make(map[string]string)
	for line != "" {
		name, rest, ok := strings.Cut(strings.TrimLeft(line, " "), "=")
		if !ok {
			break
		}
		if name == "value" || name == "error_msg" {
			out[name] = rest
			break
		}
		out[name], line, _ = strings.Cut(rest, " ")
	}
	return out
}

// processMapping tells programs which ranks share a node: blocks of (first node,
// number of nodes, ranks on each), in rank order.
func processMapping(i *step.Info) string {
	node := nodesOfRanks(i)
	type block struct{ first, nodes, ranks int }
	var blocks []block
	for r := 0; r < len(node); {
		end := r
		for end < len(node) && node[end] == node[r] {
			end++
		}
		if k := len(blocks) - 1; k >= 0 && blocks[k].ranks == end-r && blocks[k].first+blocks[k].nodes == node[r] {
			blocks[k].nodes++
		} else {
			blocks = append(blocks, block{node[r], 1, end - r})
		}
		r = end
	}
	out := "(vector"
	for _, b := range blocks {
		out += fmt.Sprintf(",(%d,%d,%d)", b.first, b.nodes, b.ranks)
	}
	return out + ")"
}

// nodesOfRanks numbers the nodes of a step in the order of its parts, and gives every rank's.
func nodesOfRanks(i *step.Info) []int {
	node := make([]int, i.Tasks)
	number := make(map[int]int)
	for _, p := range i.Parts {
		if _, ok := number[p.Node]; !ok {
			number[p.Node] = len(number)
		}
		for _, r := range p.Ranks {
			node[r] = number[p.Node]
		}
	}
	return node
}

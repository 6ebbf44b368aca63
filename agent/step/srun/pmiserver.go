package srun

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// PMI-1 is how MPICH, Intel MPI and their kin meet: every task has a socket, named
// by PMI_FD, on which it writes commands of one line and reads answers of one line
// (Flux RFC 13 describes the protocol). The node only passes lines on; srun keeps
// the one table of keys and values and counts who has come to a barrier.

// Bounds that programs are told of.
const (
	pmiKeyMax = 256
)

// pmiServer is srun's side: keys and values, and the barrier.
type pmiServer struct {
	info   *step.Info
	answer func(rank int, line string)
	abort  func(rank, code int, text string)

	mu      sync.Mutex
	values  map[string]string
	waiting []int // ranks in the barrier
	spawn   map[int]bool
}

// newPMIServer serves the tasks of a step. answer and abort are called without a
// lock, from several goroutines.
func newPMIServer(i *step.Info, answer func(rank int, line string), abort func(rank, code int, text string)) *pmiServer {
	p := &pmiServer{info: i, answer: answer, abort: abort, values: make(map[string]string), spawn: make(map[int]bool)}
	p.values["PMI_process_mapping"] = processMapping(i)
	return p
}

// handleCommand answers one line of a task.
func (p *pmiServer) handleCommand(rank int, line string) {
	line = strings.TrimRight(line, "\n")
	word := pmiWords(line)
	if p.inSpawn(rank, line, word) {
		return
	}
	kvs := fmt.Sprintf("kvs_%d", p.info.Step)
	switch word["cmd"] {
	case "init":
		p.answer(rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
	case "get_maxes":
		p.answer(rank, fmt.Sprintf("cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d rc=0", pmiKeyMax, pmiKeyMax, wire.PMIValueMax))
	case "get_appnum":
		p.answer(rank, fmt.Sprintf("cmd=appnum appnum=%d rc=0", p.appNumber(rank)))
	case "get_my_kvsname":
		p.answer(rank, "cmd=my_kvsname kvsname="+kvs+" rc=0")
	case "get_universe_size":
		p.answer(rank, fmt.Sprintf("cmd=universe_size size=%d rc=0", p.info.Tasks))
	case "put":
		p.putValue(rank, word)
	case "get":
		p.getValue(rank, word)
	case "barrier_in":
		p.enterBarrier(rank)
	case "finalize":
		p.answer(rank, "cmd=finalize_ack rc=0")
	case "abort":
		code, _ := strconv.Atoi(word["exitcode"])
		p.abort(rank, code, word["error_msg"])
	case "publish_name":
		p.answer(rank, "cmd=publish_result info=not_built rc=-1")
	case "unpublish_name":
		p.answer(rank, "cmd=unpublish_result info=not_built rc=-1")
	case "lookup_name":
		p.answer(rank, "cmd=lookup_result info=not_built rc=-1")
	default:
		p.answer(rank, "cmd="+word["cmd"]+"_result rc=-1 msg=unknown_command")
	}
}

// inSpawn swallows the lines of a spawn request and refuses it at its end.
func (p *pmiServer) inSpawn(rank int, line string, word map[string]string) bool {
	p.mu.Lock()
	in := p.spawn[rank] || word["mcmd"] == "spawn"
	p.spawn[rank] = in && line != "endcmd"
	p.mu.Unlock()
	if in && line == "endcmd" {
		p.answer(rank, "cmd=spawn_result rc=-1 msg=not_built")
	}
	return in
}

func (p *pmiServer) putValue(rank int, word map[string]string) {
	p.mu.Lock()
	p.values[word["key"]] = word["value"]
	p.mu.Unlock()
	p.answer(rank, "cmd=put_result rc=0")
}

func (p *pmiServer) getValue(rank int, word map[string]string) {
	p.mu.Lock()
	value, ok := p.values[word["key"]]
	p.mu.Unlock()
	if !ok {
		p.answer(rank, "cmd=get_result rc=-1 msg=key_not_found value=unknown")
		return
	}
	p.answer(rank, "cmd=get_result rc=0 msg=success value="+value)
}

// enterBarrier lets every task go on once all have come.
func (p *pmiServer) enterBarrier(rank int) {
	p.mu.Lock()
	if !slices.Contains(p.waiting, rank) {
		p.waiting = append(p.waiting, rank)
	}
	var all []int
	if len(p.waiting) == p.info.Tasks {
		all, p.waiting = p.waiting, nil
	}
	p.mu.Unlock()
	for _, r := range all {
		p.answer(r, "cmd=barrier_out rc=0")
	}
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
	node := make([]int, i.Tasks)
	number := make(map[int]int) // of alloc nodes, in the order of the parts
	for _, p := range i.Parts {
		if _, ok := number[p.Node]; !ok {
			number[p.Node] = len(number)
		}
		for _, r := range p.Ranks {
			node[r] = number[p.Node]
		}
	}
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

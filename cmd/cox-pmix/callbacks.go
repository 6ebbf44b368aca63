package main

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/ebitengine/purego"

	"github.com/coxswain-sched/coxswain/agent/step/pmix"
)

// pending is what the library waits for. Callbacks come on threads of the library.
type pending struct {
	mu       sync.Mutex
	next     uint64
	fences   map[string][]answer // by the ranks that take part, in the order of the fences
	gets     map[uint64]answer
	wants    map[uint64]pmix.Message // requests of other nodes that the library answers
	released map[uint64][]byte       // data that the library still reads
	release  uintptr
}

// answer is a function of the library to call, and its argument.
type answer struct{ function, data uintptr }

func newPending() pending {
	return pending{fences: map[string][]answer{}, gets: map[uint64]answer{}, wants: map[uint64]pmix.Message{}, released: map[uint64][]byte{}}
}

// awaitStatus makes a callback (pmix_op_cbfunc_t) that passes on the status.
func (p *pending) awaitStatus() (callback uintptr, answers <-chan int32) {
	c := make(chan int32, 1)
	return purego.NewCallback(func(status int32, _ uintptr) { c <- status }), c
}

// Places in pmix_server_module_t, a table of functions; those that stay empty the library
// answers itself, or refuses as not supported.
const (
	placeAbort     = 2
	placeFence     = 3
	placeDirectGet = 4
	placeSpawn     = 8
	sizeOfModule   = 64 // functions: more than any version has
)

// module makes the table of what the library asks of its host.
func (s *server) module() []byte {
	m := s.arena.alloc(8 * sizeOfModule)
	for place, f := range map[int]any{
		placeAbort: s.abortStep, placeFence: s.enterFence, placeDirectGet: s.getFromRank, placeSpawn: s.refuseSpawn,
	} {
		binary.NativeEndian.PutUint64(m[8*place:], uint64(purego.NewCallback(f)))
	}
	s.haveData = purego.NewCallback(s.sendWanted)
	s.pending.release = purego.NewCallback(s.pending.releaseData)
	return m
}

// enterFence is fence_nb: every rank of this node that takes part has come.
func (s *server) enterFence(procs uintptr, n int, _ uintptr, _ int, data uintptr, size int, done, doneData uintptr) int32 {
	ranks, err := s.readRanks(procs, n)
	if err != nil {
		return pmix.StatusBadParam
	}
	m := pmix.Message{Op: pmix.OpFence, Ranks: ranks, Data: slices.Clone(bytesAt(data, size))}
	s.pending.mu.Lock()
	key := fmt.Sprint(ranks)
	s.pending.fences[key] = append(s.pending.fences[key], answer{done, doneData})
	s.pending.mu.Unlock()
	go s.send(m)
	return 0
}

// readRanks reads an array of pmix_proc_t; nil is all ranks of the step.
func (s *server) readRanks(procs uintptr, n int) ([]int, error) {
	var out []int
	for i := range n {
		space, r := readProc(procs + uintptr(i*sizeOfProc))
		if space != s.orders.Space {
			return nil, fmt.Errorf("a rank of %q", space)
		}
		if r == everyRank {
			return nil, nil
		}
		out = append(out, int(r))
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// everyRank is PMIX_RANK_WILDCARD.
const everyRank = 0xfffffffe

// getFromRank is direct_modex: a rank here needs what a rank elsewhere published.
func (s *server) getFromRank(proc, _ uintptr, _ int, done, doneData uintptr) int32 {
	space, r := readProc(proc)
	if space != s.orders.Space || r >= uint32(s.orders.Tasks()) {
		return pmix.StatusNotFound
	}
	p := &s.pending
	p.mu.Lock()
	p.next++
	id := p.next
	p.gets[id] = answer{done, doneData}
	p.mu.Unlock()
	go s.send(pmix.Message{Op: pmix.OpGet, ID: id, Rank: int(r)})
	return 0
}

// abortStep is abort: a rank ends the step.
func (s *server) abortStep(proc, _ uintptr, status int32, text, _ uintptr, _ int, done, doneData uintptr) int32 {
	_, r := readProc(proc)
	m := pmix.Message{Op: pmix.OpAbort, Rank: int(r), Status: int(status), Text: textAt(text)}
	go func() {
		s.send(m)
		if done != 0 {
			purego.SyscallN(done, 0, doneData)
		}
	}()
	return 0
}

// refuseSpawn is spawn: MPI_Comm_spawn.
func (s *server) refuseSpawn(proc, _ uintptr, _ int, _ uintptr, _ int, _, _ uintptr) int32 {
	_, r := readProc(proc)
	go s.send(pmix.Message{Op: pmix.OpSay, Text: fmt.Sprintf("error: task %d: MPI_Comm_spawn is not served in steps of srun; start the program with mpirun inside the job, or start all ranks at once", r)})
	return pmix.StatusNotSupported
}

// eventHappened is told of what befell a program: that it went away, above all.
func (s *server) eventHappened(_ uintptr, status int32, source, _ uintptr, _ int, _ uintptr, _ int, done, doneData uintptr) {
	_, r := readProc(source)
	switch status {
	case lostConnection, processAborted:
		go s.send(pmix.Message{Op: pmix.OpLost, Rank: int(r)})
	}
	if done != 0 {
		go purego.SyscallN(done, 0, 0, 0, 0, 0, doneData)
	}
}

// Events (pmix_status_t).
const (
	lostConnection = -61
	processAborted = -402
)

// send sends a message; a link that ended ends this process elsewhere.
func (s *server) send(m pmix.Message) { _ = s.out.Send(m) }

// handle handles a message of srun.
func (s *server) handle(m pmix.Message) {
	p := &s.pending
	switch m.Op {
	case pmix.OpFenced:
		key := fmt.Sprint(m.Ranks)
		p.mu.Lock()
		waiting := p.fences[key]
		if len(waiting) > 0 {
			p.fences[key] = waiting[1:]
		}
		p.mu.Unlock()
		if len(waiting) > 0 {
			p.giveData(waiting[0], m)
		}
	case pmix.OpGot:
		p.mu.Lock()
		a, ok := p.gets[m.ID]
		delete(p.gets, m.ID)
		p.mu.Unlock()
		if ok {
			p.giveData(a, m)
		}
	case pmix.OpWant:
		s.answerWant(m)
	}
}

// giveData calls a pmix_modex_cbfunc_t. The library says when it has read the data.
func (p *pending) giveData(a answer, m pmix.Message) {
	p.mu.Lock()
	p.next++
	id := p.next
	p.released[id] = m.Data
	p.mu.Unlock()
	purego.SyscallN(a.function, uintptr(m.Status), addressOf(m.Data), uintptr(len(m.Data)), a.data, p.release, uintptr(id))
}

// releaseData is told that the library has read what giveData gave it.
func (p *pending) releaseData(id uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.released, uint64(id))
}

// answerWant has the library send what a rank here published, once it has.
func (s *server) answerWant(m pmix.Message) {
	p := &s.pending
	p.mu.Lock()
	p.next++
	id := p.next
	p.wants[id] = m
	p.mu.Unlock()
	if status := s.lib.requestModex(s.arena.proc(s.orders.Space, m.Rank), s.haveData, uintptr(id)); status != 0 {
		s.finishWant(id, status, nil)
	}
}

// sendWanted is a pmix_dmodex_response_fn_t.
func (s *server) sendWanted(status int32, data uintptr, size int, id uintptr) {
	s.finishWant(uint64(id), status, slices.Clone(bytesAt(data, size)))
}

// finishWant answers another node's request.
func (s *server) finishWant(id uint64, status int32, data []byte) {
	p := &s.pending
	p.mu.Lock()
	m, ok := p.wants[id]
	delete(p.wants, id)
	p.mu.Unlock()
	if ok {
		go s.send(pmix.Message{Op: pmix.OpHave, ID: m.ID, Node: m.Node, Status: int(status), Data: data})
	}
}

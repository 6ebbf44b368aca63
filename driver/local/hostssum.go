package local

import (
	"hash/fnv"
	"os"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/hostsfile"
)

// hostsSum is a sum of the machine's hosts file, without the blocks of Coxswain's servers: nodes do
// not see those, so that a server that starts or ends leaves the supervisors of others as they are.
type hostsSum struct {
	mu   sync.Mutex
	when time.Time // of the file that was read last
	last uint64
}

// sum reads the file if it has changed.
func (h *hostsSum) sum() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	st, err := os.Stat(hostsfile.Machine)
	if err != nil || st.ModTime().Equal(h.when) {
		return h.last
	}
	b, err := os.ReadFile(hostsfile.Machine)
	if err != nil {
		return h.last
	}
	f := fnv.New64a()
	_, _ = f.Write([]byte(hostsfile.Without(string(b), "")))
	h.when, h.last = st.ModTime(), f.Sum64()
	return h.last
}

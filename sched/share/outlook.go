package share

import (
	"cmp"
	"math"
	"slices"
)

// Seen is how often a request has arrived.
type Seen struct {
	CPU    int64  `json:"cpu,omitempty"`   // thousandths
	Count  int    `json:"count,omitempty"` // devices
	Milli  int    `json:"milli,omitempty"` // thousandths of each
	Of     string `json:"of,omitempty"`    // which will do, in words of those who ask; "": any
	Weight int64  `json:"weight"`          // so often
	Known  int64  `json:"known,omitempty"` // of these, so many count already
}

// Memory is what has arrived, of which an Outlook is made. It is data: what is written
// down and read again goes on as if nothing had happened. What comes counts from the
// next time on that an outlook is made, which is after each eighth more.
type Memory struct {
	Seen []Seen `json:"seen,omitempty"` // in order of first arrival
	Sum  int64  `json:"sum,omitempty"`  // of the weights
	CPU  int64  `json:"cpu,omitempty"`  // asked for together with devices
	GPU  int64  `json:"gpu,omitempty"`
	Due  int64  `json:"due,omitempty"` // sum at which an outlook is made

	KnownCPU int64 `json:"known_cpu,omitempty"` // as CPU and GPU, when that was made last
	KnownGPU int64 `json:"known_gpu,omitempty"`

	at map[kind]int // index of Seen
}

type kind struct {
	cpu          int64
	count, milli int
	of           string
}

// distinct bounds how many requests are told apart. Where more arrive, so many of those
// that arrived most rarely are forgotten.
const (
	distinct = 1024
	rarest   = distinct / 8
)

// What is larger counts as so much, so that no sum wraps.
const (
	mostAsked = 1 << 27 // thousandths of CPUs, of a request and of a node
	mostTaken = 128     // devices
)

// Arrived counts a request, so many times, and reports whether a new outlook is due.
func (m *Memory) Arrived(s Seen, times int64) (changed bool) {
	s.CPU, s.Count, times = min(s.CPU, mostAsked), min(s.Count, mostTaken), min(times, memory)
	m.indexRequests()
	key := kind{s.CPU, s.Count, s.Milli, s.Of}
	i, ok := m.at[key]
	if !ok {
		if len(m.Seen) >= distinct {
			m.pruneRarest()
		}
		i = len(m.Seen)
		s.Weight, s.Known = 0, 0
		m.Seen = append(m.Seen, s)
		m.at[key] = i
	}
	m.Seen[i].Weight += times
	m.Sum += times
	if s.Count > 0 {
		m.CPU += times * s.CPU
		m.GPU += times * int64(s.Count*s.Milli)
	}
	if m.Sum < m.Due {
		return false
	}
	for m.Sum >= memory {
		m.halveWeights()
	}
	m.Due = m.Sum + 1 + m.Sum/8
	m.KnownCPU, m.KnownGPU = m.CPU, m.GPU
	for i := range m.Seen {
		m.Seen[i].Known = m.Seen[i].Weight
	}
	return true
}

// pruneRarest forgets the requests that arrived most rarely, of equals those that came first.
// An outlook is due then: nothing counts that is not remembered.
func (m *Memory) pruneRarest() {
	order := make([]int, len(m.Seen))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.Seen[a].Weight, m.Seen[b].Weight) })
	for _, i := range order[:len(order)-distinct+rarest] {
		s := &m.Seen[i]
		m.Sum -= s.Weight
		if s.Count > 0 {
			m.CPU -= s.Weight * s.CPU
			m.GPU -= s.Weight * int64(s.Count*s.Milli)
		}
		s.Weight = 0
	}
	m.CPU, m.GPU = max(m.CPU, 0), max(m.GPU, 0)
	m.dropWeightless()
	m.Due = 0
}

// halveWeights halves what is known, so that what came long ago counts less and less.
func (m *Memory) halveWeights() {
	m.Sum = 0
	for i := range m.Seen {
		m.Seen[i].Weight /= 2
		m.Sum += m.Seen[i].Weight
	}
	m.CPU, m.GPU = m.CPU/2, m.GPU/2
	m.dropWeightless()
}

// dropWeightless takes out what has no weight any more.
func (m *Memory) dropWeightless() {
	m.Seen = slices.DeleteFunc(m.Seen, func(s Seen) bool { return s.Weight == 0 })
	m.at = nil
	m.indexRequests()
}

func (m *Memory) indexRequests() {
	if m.at != nil {
		return
	}
	m.at = make(map[kind]int, len(m.Seen))
	for i, s := range m.Seen {
		m.at[kind{s.CPU, s.Count, s.Milli, s.Of}] = i
	}
}

// Clone returns a copy that shares nothing.
func (m *Memory) Clone() *Memory {
	c := *m
	c.Seen, c.at = slices.Clone(m.Seen), nil
	return &c
}

// Outlook is what is expected to arrive. It is immutable.
type Outlook struct {
	mix      *Mix
	cpu, gpu int64
}

// Outlook makes one of what counts. models says which models will do for what Seen.Of
// says; none: no node has any.
func (m *Memory) Outlook(models func(of string) []int) *Outlook {
	var list []Weighed
	for _, s := range m.Seen {
		if s.Known > 0 {
			r := Request{CPU: s.CPU, Count: s.Count, Milli: s.Milli}
			if s.Of != "" {
				if r.Models = models(s.Of); len(r.Models) == 0 {
					r.Models = []int{-1}
				}
			}
			list = append(list, Weighed{r, s.Known})
		}
	}
	return &Outlook{NewMix(list), m.KnownCPU, m.KnownGPU}
}

// Stock is what is left on a node: CPUs, and devices by model.
type Stock struct {
	CPU   int64
	Banks []Bank
}

// Bank is the devices of one model on a node.
type Bank struct {
	Model int
	Take  int   // thousandths that the request takes of each device that it takes here; 0: they will not do
	Left  []int // thousandths
}

// Pick is which devices of a stock a request for a part of one takes.
type Pick struct{ Bank, Device int }

// Rate is less the more becomes useless, as Expected has it, if a request for so many
// CPUs and devices is served from a stock, which must have them. For a part of a device
// it says of which one; that request has a count of 1 and takes less than Whole. Of
// nodes on which as much becomes useless it prefers those with the least left: devices,
// or CPUs if it takes no device.
func (o *Outlook) Rate(s *Stock, cpu int64, count int, part bool) (int64, Pick) {
	s.CPU, cpu = min(s.CPU, mostAsked), min(cpu, mostAsked)
	before, total := o.fragmentedDevices(s.CPU, s.Banks), int64(0)
	for i := range s.Banks {
		total += sumOf(s.Banks[i].Left)
	}
	none := Pick{-1, -1}
	rate := func(take int64) int64 {
		lost := o.strandedDevices(s.CPU-cpu, total-take) - o.strandedDevices(s.CPU, total)
		lost += floorDiv(o.fragmentedDevices(s.CPU-cpu, s.Banks)-before, max(o.mix.All(), 1))
		left := total - take
		if count == 0 {
			left = (s.CPU - cpu) / Whole
		}
		return -floorDiv(lost, grain)<<24 - left
	}
	if !part {
		var taken []Pick
		take := int64(0)
		for b := range s.Banks {
			bank := &s.Banks[b]
			for d, l := range bank.Left {
				if len(taken) < count && bank.Take > 0 && l >= bank.Take {
					bank.Left[d] -= bank.Take
					take += int64(bank.Take)
					taken = append(taken, Pick{b, d})
				}
			}
		}
		x := rate(take)
		for _, p := range taken {
			s.Banks[p.Bank].Left[p.Device] += s.Banks[p.Bank].Take
		}
		return x, none
	}
	best, at, left := int64(0), none, 0
	for b := range s.Banks {
		bank := &s.Banks[b]
		for d, l := range bank.Left {
			if bank.Take == 0 || l < bank.Take || slices.Contains(bank.Left[:d], l) {
				continue // an equal one was tried
			}
			bank.Left[d] = l - bank.Take
			if x := rate(int64(bank.Take)); at == none || cmp.Or(cmp.Compare(x, best), cmp.Compare(left, l)) > 0 {
				best, at, left = x, Pick{b, d}, l
			}
			bank.Left[d] = l
		}
	}
	if at == none { // by thousandths no device has room: nothing is worse
		return math.MinInt64, none
	}
	return best, at
}

func (o *Outlook) fragmentedDevices(cpu int64, banks []Bank) int64 {
	lost := int64(0)
	for i := range banks {
		lost += o.mix.Fragmented(cpu, banks[i].Left, banks[i].Model)
	}
	return lost
}

// strandedDevices is how much of the devices left is too much for the CPUs left.
func (o *Outlook) strandedDevices(cpu, gpu int64) int64 {
	if o.cpu == 0 {
		return 0
	}
	return max(0, gpu-cpu*o.gpu/o.cpu)
}

func sumOf(left []int) int64 {
	n := int64(0)
	for _, l := range left {
		n += int64(l)
	}
	return n
}

package share

import "slices"

// Expected is Coxswain's own score: place where least becomes useless, by two
// measures of that, against the mix of requests that have arrived so far.
//
//   - The expected fragmentation (see Fragmentation): what the next request could not
//     use of the devices left.
//   - What is stranded: of the devices left, those for which the CPUs left would not
//     do if they went on being used as requests use them on average. So requests with
//     many CPUs go where CPUs are plenty, and requests with few where they are scarce,
//     long before either runs out.
//
// Differences below grain do not count: then the node with the least left, then the
// first one. The sum is in thousandths of a device, in integers. Nothing is known of
// requests to come.
type Expected struct {
	seen     []Weighed
	sum      int64 // of the weights
	cpu, gpu int64 // asked for together with devices
	due      int64 // sum at which the mix is made anew
	mix      *Mix
	now      []int // scratch
}

const (
	grain  = 20      // thousandths of a device
	memory = 1 << 16 // requests: then all weights are halved
)

// Arrived counts a request. The mix is made anew each time an eighth more have come.
func (s *Expected) Arrived(r *Request) (changed bool) {
	i := slices.IndexFunc(s.seen, func(w Weighed) bool {
		return w.CPU == r.CPU && w.Count == r.Count && w.Milli == r.Milli && slices.Equal(w.Models, r.Models)
	})
	if i < 0 {
		i = len(s.seen)
		s.seen = append(s.seen, Weighed{Request: *r})
	}
	s.seen[i].Weight++
	s.sum++
	if r.Count > 0 {
		s.cpu += r.CPU
		s.gpu += int64(r.Total())
	}
	if s.sum < s.due {
		return false
	}
	if s.sum >= memory {
		s.halveWeights()
	}
	s.due = s.sum + 1 + s.sum/8
	s.mix = NewMix(s.seen)
	return true
}

// halveWeights halves what is known, so that what came long ago counts less and less.
func (s *Expected) halveWeights() {
	s.sum = 0
	for i := range s.seen {
		s.seen[i].Weight /= 2
		s.sum += s.seen[i].Weight
	}
	s.seen = slices.DeleteFunc(s.seen, func(w Weighed) bool { return w.Weight == 0 })
	s.cpu, s.gpu = s.cpu/2, s.gpu/2
}

// Rate is less the more becomes useless.
func (s *Expected) Rate(n *Node, r *Request) (int64, int) {
	before := s.mix.Fragmented(n.CPU, n.Left, n.Model)
	total, take := int64(n.Total()), int64(r.Total())
	stranded := s.strandedDevices(n.CPU-r.CPU, total-take) - s.strandedDevices(n.CPU, total)
	rate := func(left []int) int64 {
		grown := floorDiv(s.mix.Fragmented(n.CPU-r.CPU, left, n.Model)-before, s.mix.All()) + stranded
		return -floorDiv(grown, grain)<<24 - (total - take)
	}
	s.now = append(s.now[:0], n.Left...)
	if !r.Part() {
		for _, d := range n.devicesTaken(r, -1) {
			s.now[d] -= r.Milli
		}
		return rate(s.now), -1
	}
	best, device := int64(0), -1
	for d, l := range n.Left {
		if l < r.Milli || slices.Contains(n.Left[:d], l) {
			continue // an equal one was tried
		}
		s.now[d] = l - r.Milli
		if x := rate(s.now); device < 0 || x > best || x == best && l < n.Left[device] {
			best, device = x, d
		}
		s.now[d] = l
	}
	return best, device
}

// strandedDevices is how much of the devices left is too much for the CPUs left.
func (s *Expected) strandedDevices(cpu, gpu int64) int64 {
	if s.cpu == 0 {
		return 0
	}
	return max(0, gpu-cpu*s.gpu/s.cpu)
}

// floorDiv divides, rounding down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

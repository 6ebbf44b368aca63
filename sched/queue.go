package sched

import "slices"

// fifo holds jobs in queue order. Taking the first and adding the last one cost
// the same however many there are.
type fifo struct {
	buf  []*entry // sorted by before from index from on
	from int
}

func (q *fifo) allJobs() []*entry { return q.buf[q.from:] }

func (q *fifo) len() int { return len(q.buf) - q.from }

// firstJob is the job that goes first, or nil.
func (q *fifo) firstJob() *entry {
	if q.len() == 0 {
		return nil
	}
	return q.buf[q.from]
}

// countAhead counts the jobs before e, which may be one of them.
func (q *fifo) countAhead(e *entry) int {
	if n := q.len(); n > 0 && q.allJobs()[n-1].compareOrder(e) < 0 {
		return n // as most are
	} else if n == 0 || q.firstJob().compareOrder(e) >= 0 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(q.allJobs(), e, (*entry).compareOrder)
	return i
}

func (q *fifo) insertSorted(e *entry) {
	switch i := q.countAhead(e); {
	case i == q.len():
		q.buf = append(q.buf, e)
	case i == 0 && q.from > 0:
		q.from--
		q.buf[q.from] = e
	default:
		q.buf = slices.Insert(q.buf, q.from+i, e)
	}
}

func (q *fifo) remove(e *entry) {
	i := q.countAhead(e)
	switch {
	case i == q.len() || q.allJobs()[i] != e:
		return
	case i > 0:
		q.buf = slices.Delete(q.buf, q.from+i, q.from+i+1)
		return
	}
	q.buf[q.from] = nil
	q.from++
	if q.from > 32 && q.from*2 > len(q.buf) {
		n := copy(q.buf, q.buf[q.from:])
		clear(q.buf[n:])
		q.buf, q.from = q.buf[:n], 0
	}
}

// ranking is a heap of lines by their first jobs, the one that goes first on top. A
// line knows its place in each ranking that it may stand in.
type ranking[P placing] []*line

// placing is where a line keeps its place in a ranking; -1: it does not stand there.
type placing interface{ indexIn(l *line) *int }

type (
	heads    = ranking[inHeads] // of all lines
	ownHeads = ranking[inQueue] // of the lines of one queue
	order    = ranking[inOrder]
)

type (
	inHeads struct{}
	inQueue struct{}
	inOrder struct{}
)

func (inHeads) indexIn(l *line) *int { return &l.place }
func (inQueue) indexIn(l *line) *int { return &l.stake.place }
func (inOrder) indexIn(l *line) *int { return &l.spot }

func (h ranking[P]) indexOf(l *line) *int {
	var p P
	return p.indexIn(l)
}

// firstClass is the line on top, or nil.
func (h ranking[P]) firstClass() *line {
	if len(h) == 0 {
		return nil
	}
	return h[0]
}

func (h ranking[P]) less(i, j int) bool { return h[i].goesBefore(h[j]) }

func (h ranking[P]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h.indexOf(h[i]), *h.indexOf(h[j]) = i, j
}

// fixPosition puts a line in its place after its first job changed, adds it if it has a job
// and was not there, or takes it away if it has none.
func (h *ranking[P]) fixPosition(l *line) {
	at := h.indexOf(l)
	switch {
	case l.jobs.len() == 0:
		h.remove(l)
	case *at < 0:
		*at = len(*h)
		*h = append(*h, l)
		h.siftUp(*at)
	case !h.siftDown(*at):
		h.siftUp(*at)
	}
}

// initHeap puts all lines in order after their priorities changed.
func (h ranking[P]) initHeap() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.siftDown(i)
	}
}

func (h *ranking[P]) remove(l *line) {
	at := h.indexOf(l)
	i, last := *at, len(*h)-1
	if i < 0 {
		return
	}
	if i != last {
		h.swap(i, last)
	}
	(*h)[last] = nil
	*h = (*h)[:last]
	*at = -1
	if i < last && !h.siftDown(i) {
		h.siftUp(i)
	}
}

func (h ranking[P]) siftUp(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

// siftDown reports whether the line moved.
func (h ranking[P]) siftDown(i int) bool {
	from := i
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			break
		}
		h.swap(i, child)
		i = child
	}
	return i > from
}

// ends holds runs by planned end, then by number, in chunks, so that adding one
// moves few.
type ends struct {
	chunks [][]*run
	n      int
}

const chunk = 256

func (s *ends) findRun(r *run) (c, i int) {
	lo, hi := 0, len(s.chunks)
	for lo < hi {
		m := (lo + hi) / 2
		if last := s.chunks[m][len(s.chunks[m])-1]; last.compareEnds(r) < 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == len(s.chunks) {
		return lo, 0
	}
	i, _ = slices.BinarySearchFunc(s.chunks[lo], r, (*run).compareEnds)
	return lo, i
}

func (s *ends) insertRun(r *run) {
	s.n++
	c, i := s.findRun(r)
	if c == len(s.chunks) {
		if c == 0 {
			s.chunks = append(s.chunks, append(make([]*run, 0, 2*chunk), r))
			return
		}
		c--
		i = len(s.chunks[c])
	}
	s.chunks[c] = slices.Insert(s.chunks[c], i, r)
	if len(s.chunks[c]) >= 2*chunk {
		half := append(make([]*run, 0, 2*chunk), s.chunks[c][chunk:]...)
		clear(s.chunks[c][chunk:])
		s.chunks[c] = s.chunks[c][:chunk]
		s.chunks = slices.Insert(s.chunks, c+1, half)
	}
}

func (s *ends) remove(r *run) {
	c, i := s.findRun(r)
	s.n--
	s.chunks[c] = slices.Delete(s.chunks[c], i, i+1)
	if len(s.chunks[c]) == 0 {
		s.chunks = slices.Delete(s.chunks, c, c+1)
	}
}

// allRuns lists the runs in order.
func (s *ends) allRuns() []*run {
	out := make([]*run, 0, s.n)
	for _, c := range s.chunks {
		out = append(out, c...)
	}
	return out
}

package sched

import "slices"

// fifo holds jobs in queue order. Taking the first and adding the last one cost
// the same however many there are.
type fifo struct {
	buf  []*queuedJob // sorted by before from index from on
	from int
}

func (q *fifo) allJobs() []*queuedJob { return q.buf[q.from:] }

func (q *fifo) len() int { return len(q.buf) - q.from }

// firstJob is the job that goes first, or nil.
func (q *fifo) firstJob() *queuedJob {
	if q.len() == 0 {
		return nil
	}
	return q.buf[q.from]
}

// countAhead counts the jobs before e, which may be one of them.
func (q *fifo) countAhead(e *queuedJob) int {
	if n := q.len(); n > 0 && q.allJobs()[n-1].compareOrder(e) < 0 {
		return n // as most are
	} else if n == 0 || q.firstJob().compareOrder(e) >= 0 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(q.allJobs(), e, (*queuedJob).compareOrder)
	return i
}

func (q *fifo) insertSorted(e *queuedJob) {
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

func (q *fifo) remove(e *queuedJob) {
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

// ranking is a heap of classes by their first jobs, the one that goes first on top. A
// class knows its place in each ranking that it may stand in.
type ranking[P classIndex] []*jobClass

// classIndex is where a class keeps its place in a ranking; -1: it does not stand there.
type classIndex interface{ indexIn(l *jobClass) *int }

type (
	heads    = ranking[inHeads] // of all classes
	ownHeads = ranking[inQueue] // of the classes of one queue
	order    = ranking[inOrder]
)

type (
	inHeads struct{}
	inQueue struct{}
	inOrder struct{}
)

func (inHeads) indexIn(l *jobClass) *int { return &l.headsIndex }
func (inQueue) indexIn(l *jobClass) *int { return &l.quotaDemand.queueIndex }
func (inOrder) indexIn(l *jobClass) *int { return &l.behindIndex }

func (h ranking[P]) indexOf(l *jobClass) *int {
	var p P
	return p.indexIn(l)
}

// firstClass is the class on top, or nil.
func (h ranking[P]) firstClass() *jobClass {
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

// fixPosition puts a class in its place after its first job changed, adds it if it has a job
// and was not there, or takes it away if it has none.
func (h *ranking[P]) fixPosition(l *jobClass) {
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

// initHeap puts all classes in order after their priorities changed.
func (h ranking[P]) initHeap() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.siftDown(i)
	}
}

func (h *ranking[P]) remove(l *jobClass) {
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

// siftDown reports whether the class moved.
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

// plannedEnds holds runs by planned end, then by number, in chunks, so that adding one
// moves few.
type plannedEnds struct {
	chunks [][]*run
	n      int
}

const chunk = 256

func (s *plannedEnds) findRun(r *run) (c, i int) {
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

func (s *plannedEnds) insertRun(r *run) {
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

func (s *plannedEnds) remove(r *run) {
	c, i := s.findRun(r)
	s.n--
	s.chunks[c] = slices.Delete(s.chunks[c], i, i+1)
	if len(s.chunks[c]) == 0 {
		s.chunks = slices.Delete(s.chunks, c, c+1)
	}
}

// allRuns lists the runs in order.
func (s *plannedEnds) allRuns() []*run {
	out := make([]*run, 0, s.n)
	for _, c := range s.chunks {
		out = append(out, c...)
	}
	return out
}

package plan

import "slices"

// Profile counts how many nodes can begin at each instant, and follows changes: a
// node that changes costs a few steps, however many nodes there are. First is
// Earliest asked of it.
//
// It holds, in order, the instants at which the count changes, in chunks that know
// their sum, and the largest sum of any of their beginnings.
type Profile[I ~int64] struct {
	chunks []*chunk[I]
	spare  []*chunk[I]
}

// chunk is some instants that follow each other. It is never empty.
type chunk[I ~int64] struct {
	changes []change[I]
	sum     int
	most    int  // of the sums of its first changes, one of them at least
	stale   bool // most is to be worked out again
}

type change[I ~int64] struct {
	at I
	n  int // of nodes more; never 0
}

// chunkSize is when a chunk is divided.
const chunkSize = 128

// Clear forgets all.
func (p *Profile[I]) Clear() {
	p.spare = append(p.spare, p.chunks...)
	clear(p.chunks)
	p.chunks = p.chunks[:0]
}

// Copy makes it equal to another one.
func (p *Profile[I]) Copy(o *Profile[I]) {
	p.Clear()
	for _, c := range o.chunks {
		x := p.newChunk()
		x.changes = append(x.changes, c.changes...)
		x.sum, x.most, x.stale = c.sum, c.most, c.stale
		p.chunks = append(p.chunks, x)
	}
}

// newChunk is an empty one.
func (p *Profile[I]) newChunk() *chunk[I] {
	if n := len(p.spare); n > 0 {
		c := p.spare[n-1]
		p.spare = p.spare[:n-1]
		c.changes, c.sum, c.stale = c.changes[:0], 0, true
		return c
	}
	return &chunk[I]{changes: make([]change[I], 0, chunkSize), stale: true}
}

// Fill makes it that of nodes that can begin from these instants on, which it sorts.
func (p *Profile[I]) Fill(from []I) {
	p.Clear()
	slices.Sort(from)
	var c *chunk[I]
	for i := 0; i < len(from) && from[i] != Never; {
		n := i
		for n < len(from) && from[n] == from[i] {
			n++
		}
		if c == nil || len(c.changes) >= chunkSize/2 {
			c = p.newChunk()
			p.chunks = append(p.chunks, c)
		}
		c.changes = append(c.changes, change[I]{from[i], n - i})
		c.sum += n - i
		i = n
	}
}

// Add has so many nodes more able to begin from an instant on.
func (p *Profile[I]) Add(at I, n int) {
	if at == Never || n == 0 {
		return
	}
	k := p.findChunk(at)
	if k < 0 {
		c := p.newChunk()
		c.changes, c.sum = append(c.changes, change[I]{at, n}), n
		p.chunks = slices.Insert(p.chunks, 0, c)
		return
	}
	c := p.chunks[k]
	c.sum += n
	c.stale = true
	i, found := c.findChange(at)
	switch {
	case !found:
		c.changes = slices.Insert(c.changes, i, change[I]{at, n})
		if len(c.changes) >= chunkSize {
			p.splitChunk(k)
		}
	case c.changes[i].n+n != 0:
		c.changes[i].n += n
	default:
		if c.changes = slices.Delete(c.changes, i, i+1); len(c.changes) == 0 {
			p.spare = append(p.spare, c)
			p.chunks = slices.Delete(p.chunks, k, k+1)
		}
	}
}

// AddSpan has so many nodes more able to begin during a span.
func (p *Profile[I]) AddSpan(s Span[I], n int) {
	p.Add(s.From, n)
	p.Add(s.End, -n)
}

// findChunk is the last chunk that begins by an instant, else the first one; -1: there is
// none.
func (p *Profile[I]) findChunk(at I) int {
	lo, hi := 0, len(p.chunks)
	for lo < hi {
		if m := (lo + hi) / 2; p.chunks[m].changes[0].at <= at {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == 0 && len(p.chunks) > 0 {
		return 0
	}
	return lo - 1
}

func (c *chunk[I]) findChange(at I) (int, bool) {
	lo, hi := 0, len(c.changes)
	for lo < hi {
		if m := (lo + hi) / 2; c.changes[m].at < at {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo, lo < len(c.changes) && c.changes[lo].at == at
}

func (p *Profile[I]) splitChunk(k int) {
	c, x := p.chunks[k], p.newChunk()
	half := len(c.changes) / 2
	x.changes = append(x.changes, c.changes[half:]...)
	c.changes = c.changes[:half]
	for _, d := range x.changes {
		x.sum += d.n
	}
	c.sum -= x.sum
	p.chunks = slices.Insert(p.chunks, k+1, x)
}

// First is the first instant, not before from, at which at least need nodes can
// begin; Never if there is none.
func (p *Profile[I]) First(from I, need int) I {
	count, k := 0, 0
	for ; k < len(p.chunks) && p.chunks[k].lastInstant() <= from; k++ {
		count += p.chunks[k].sum
	}
	i := 0
	if k < len(p.chunks) {
		for ; p.chunks[k].changes[i].at <= from; i++ {
			count += p.chunks[k].changes[i].n
		}
	}
	if count >= need {
		return from
	}
	for ; k < len(p.chunks); k, i = k+1, 0 {
		c := p.chunks[k]
		if i == 0 && count+c.largestCount() < need {
			count += c.sum
			continue
		}
		for ; i < len(c.changes); i++ {
			if count += c.changes[i].n; count >= need {
				return c.changes[i].at
			}
		}
	}
	return Never
}

// Count is how many nodes can begin at an instant, and just before it.
func (p *Profile[I]) Count(at I) (then, before int) {
	for _, c := range p.chunks {
		if c.lastInstant() < at {
			then += c.sum
			continue
		}
		before = then
		for _, d := range c.changes {
			switch {
			case d.at < at:
				then, before = then+d.n, before+d.n
			case d.at == at:
				then += d.n
			default:
				return then, before
			}
		}
		return then, before
	}
	return then, then
}

func (c *chunk[I]) lastInstant() I { return c.changes[len(c.changes)-1].at }

func (c *chunk[I]) largestCount() int {
	if c.stale {
		c.stale = false
		sum := 0
		for i, d := range c.changes {
			if sum += d.n; i == 0 || sum > c.most {
				c.most = sum
			}
		}
	}
	return c.most
}

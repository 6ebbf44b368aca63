package fabric

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// ring is the place of a rank between two others.
type ring struct {
	rank, size int
	next       net.Conn // to the rank after it
	prev       net.Conn // from the rank before it
}

// measure connects the ring, measures its connections and the all-reduces, and prints what it finds.
func measure(own peer, all []peer, l net.Listener, out io.Writer) error {
	if len(all) < 2 {
		return nil // nothing lies between
	}
	r, err := connectRing(own, all, l)
	if err != nil {
		return err
	}
	defer r.close()
	before := (r.rank + r.size - 1) % r.size
	took, err := r.measureLink(linkBytes)
	if err != nil {
		return fmt.Errorf("between rank %d and rank %d: %w", before, r.rank, err)
	}
	fmt.Fprintf(out, "cox-verify link rank=%d from=%d bytes=%d ns=%d over=%s\n", r.rank, before, linkBytes, took.Nanoseconds(), interfaceOf(r.prev.LocalAddr()))
	for i, size := range sizes {
		took, err := r.measureReduce(size)
		if err != nil {
			return fmt.Errorf("all-reduce of %d MB: %w", size>>20, err)
		}
		fmt.Fprintf(out, "cox-verify ring rank=%d of=%d bytes=%d ns=%d\n", r.rank, r.size, size, took.Nanoseconds())
		slowest, err := r.agreeMax(uint64(took.Nanoseconds()))
		if err != nil {
			return err
		}
		if i+1 < len(sizes) && time.Duration(slowest)*time.Duration(sizes[i+1]/size)*(rounds+1) > longest {
			return nil // the next one is left out by all
		}
	}
	return nil
}

// connectRing connects to the rank after and waits for the one before.
func connectRing(own peer, all []peer, l net.Listener) (*ring, error) {
	until := time.Now().Add(ringTime)
	after, before := all[(own.rank+1)%len(all)], (own.rank+len(all)-1)%len(all)
	if len(after.at) == 0 {
		return nil, fmt.Errorf("rank %d cannot take part: its node has no cox", after.rank)
	}
	type result struct {
		c   net.Conn
		err error
	}
	in := make(chan result, 1) // nobody may wait for it
	go func() {
		c, err := acceptPeer(l, own.token, before)
		in <- result{c, err}
	}()
	next, err := dialPeer(own, &after)
	if err != nil {
		return nil, fmt.Errorf("cannot reach rank %d: %w", after.rank, err)
	}
	if len(all[before].at) == 0 {
		_ = next.Close()
		return nil, fmt.Errorf("rank %d cannot take part: its node has no cox", before)
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add((dialTime + helloTime) * (maxAddresses + 1)))
	prev := <-in
	if prev.err != nil {
		_ = next.Close()
		return nil, fmt.Errorf("rank %d did not connect: %w", before, prev.err)
	}
	return &ring{rank: own.rank, size: len(all), next: &moving{next, until, after.rank}, prev: &moving{prev.c, until, before}}, nil
}

func (r *ring) close() {
	_ = r.next.Close()
	_ = r.prev.Close()
}

// A connection begins with the token of the rank that is connected to and the number of the one that
// connects, and is answered by one byte.
const helloBytes = 32 + 8

// dialPeer connects to a rank at the first of its addresses where that answers.
func dialPeer(own peer, to *peer) (net.Conn, error) {
	var errs []error
	for _, at := range to.at[:min(len(to.at), maxAddresses)] {
		c, err := net.DialTimeout("tcp", at, dialTime)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_ = c.SetDeadline(time.Now().Add(helloTime))
		hello := make([]byte, helloBytes)
		copy(hello, to.token)
		binary.LittleEndian.PutUint64(hello[32:], uint64(own.rank))
		answer := make([]byte, 1)
		if _, err = c.Write(hello); err == nil {
			_, err = io.ReadFull(c, answer)
		}
		if err == nil {
			return c, nil
		}
		_ = c.Close()
		errs = append(errs, fmt.Errorf("%s: somebody else listens there: %w", at, err))
	}
	return nil, errors.Join(errs...)
}

// acceptPeer waits for the connection of a rank. Others are closed.
func acceptPeer(l net.Listener, token string, from int) (net.Conn, error) {
	for {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		_ = c.SetDeadline(time.Now().Add(helloTime))
		hello := make([]byte, helloBytes)
		if _, err := io.ReadFull(c, hello); err != nil || subtle.ConstantTimeCompare(hello[:32], []byte(token)) != 1 || binary.LittleEndian.Uint64(hello[32:]) != uint64(from) {
			_ = c.Close()
			continue
		}
		if _, err := c.Write([]byte{1}); err != nil {
			return nil, err
		}
		return c, nil
	}
}

// moving is a connection to a rank that may take its time as long as something moves. What waits for
// stillTime, or beyond the time of the whole ring, fails.
type moving struct {
	net.Conn

	until time.Time
	rank  int
}

// chunkBytes are written under one deadline.
const chunkBytes = 256 << 10

// nextDeadline is when the next bytes have to have moved.
func (m *moving) nextDeadline() time.Time {
	if d := time.Now().Add(stillTime); d.Before(m.until) {
		return d
	}
	return m.until
}

func (m *moving) Read(p []byte) (int, error) {
	_ = m.SetReadDeadline(m.nextDeadline())
	n, err := m.Conn.Read(p)
	return n, m.explainStall("nothing came from", err)
}

func (m *moving) Write(p []byte) (done int, err error) {
	for len(p) > 0 && err == nil {
		_ = m.SetWriteDeadline(m.nextDeadline())
		var n int
		n, err = m.Conn.Write(p[:min(len(p), chunkBytes)])
		done, p = done+n, p[n:]
	}
	return done, m.explainStall("nothing went to", err)
}

// explainStall names the rank with which nothing moves.
func (m *moving) explainStall(what string, err error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return err
	case time.Now().Before(m.until):
		return fmt.Errorf("%s rank %d for %s: %w", what, m.rank, stillTime, err)
	}
	return fmt.Errorf("it is not over after %s: %w", ringTime, err)
}

// exchange sends to the next rank while it receives from the one before.
func (r *ring) exchange(send, receive []byte) error {
	sent := make(chan error, 1)
	go func() {
		_, err := r.next.Write(send)
		sent <- err
	}()
	_, err := io.ReadFull(r.prev, receive)
	return errors.Join(err, <-sent)
}

// agreeMax returns the largest of the values of all ranks. No rank goes on before all have come here.
func (r *ring) agreeMax(v uint64) (uint64, error) {
	out, in := make([]byte, 8), make([]byte, 8)
	for range 2 * (r.size - 1) {
		binary.LittleEndian.PutUint64(out, v)
		if err := r.exchange(out, in); err != nil {
			return 0, err
		}
		v = max(v, binary.LittleEndian.Uint64(in))
	}
	return v, nil
}

// measureLink is how long the rank before takes to send so many bytes to this one, while all others
// do the same.
func (r *ring) measureLink(bytes int) (time.Duration, error) {
	block, into := make([]byte, 1<<20), make([]byte, 1<<20)
	if _, err := r.agreeMax(0); err != nil {
		return 0, err
	}
	sent := make(chan error, 1)
	go func() {
		for range bytes / len(block) {
			if _, err := r.next.Write(block); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	start := time.Now()
	var err error
	for range bytes / len(into) {
		if _, err = io.ReadFull(r.prev, into); err != nil {
			break
		}
	}
	took := time.Since(start)
	return took, errors.Join(err, <-sent)
}

// measureReduce is how long an all-reduce of so many bytes takes here, on average. The sum is checked.
func (r *ring) measureReduce(bytes int) (time.Duration, error) {
	words := make([]uint32, bytes/4)
	var took time.Duration
	for round := range rounds + 1 {
		for i := range words {
			words[i] = uint32(i) * uint32(r.rank+1)
		}
		if _, err := r.agreeMax(0); err != nil {
			return 0, err
		}
		start := time.Now()
		if err := r.reduce(words); err != nil {
			return 0, err
		}
		if round > 0 {
			took += time.Since(start)
		}
		all := uint32(r.size * (r.size + 1) / 2)
		for i, w := range words {
			if w != uint32(i)*all {
				return 0, fmt.Errorf("the sum is wrong from word %d on: %d, not %d", i, w, uint32(i)*all)
			}
		}
	}
	return max(took/rounds, 1), nil
}

// reduce sums the words of all ranks, in all of them: first each rank gets the sum of one part, then
// the parts go round.
func (r *ring) reduce(words []uint32) error {
	n := r.size
	part := func(i int) []uint32 {
		i = (i%n + n) % n
		return words[i*len(words)/n : (i+1)*len(words)/n]
	}
	out, in := make([]byte, 4*(len(words)/n+1)), make([]byte, 4*(len(words)/n+1))
	for step := range 2 * (n - 1) {
		send, receive := part(r.rank-step), part(r.rank-step-1)
		for i, w := range send {
			binary.LittleEndian.PutUint32(out[4*i:], w)
		}
		if err := r.exchange(out[:4*len(send)], in[:4*len(receive)]); err != nil {
			return err
		}
		for i := range receive {
			w := binary.LittleEndian.Uint32(in[4*i:])
			if step < n-1 {
				w += receive[i]
			}
			receive[i] = w
		}
	}
	return nil
}

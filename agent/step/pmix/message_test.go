package pmix

import (
	"bytes"
	"net"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

func TestMessagesSurviveTheirFrames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		size := rapid.SampledFrom([]int{0, 1, 100, chunkSize - 1, chunkSize, 3*chunkSize + 7}).Draw(r, "size")
		want := Message{
			Op: OpFence, ID: rapid.Uint64().Draw(r, "id"), Ranks: rapid.SliceOfN(rapid.IntRange(0, 1<<20), 1, 50).Draw(r, "ranks"),
			Status: int(rapid.Int32().Draw(r, "status")), Text: rapid.String().Draw(r, "text"), Data: bytes.Repeat([]byte{7}, size),
		}
		sent := make(chan error, 1)
		go func() { sent <- (&Sender{Link: wire.NewLink(a)}).Send(want) }()
		in, budget := Joiner{}, &wire.Budget{}
		link := wire.NewServerLink(b, budget) // as a node reads it, with its bounds
		for {
			f, err := link.Receive()
			if err != nil {
				r.Fatal(err)
			}
			got, ok, err := in.Add(f)
			if err != nil {
				r.Fatal(err)
			}
			if ok {
				if err := <-sent; err != nil || !reflect.DeepEqual(got, want) {
					r.Fatalf("%+v, want %+v (%v)", got, want, err)
				}
				return
			}
		}
	})
}

func TestDecodeRefuses(t *testing.T) {
	for _, body := range []string{"", "\x80", "\x05{}", "\x02[]", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01{}"} {
		if m, err := Decode([]byte(body)); err == nil {
			t.Errorf("%q is %+v", body, m)
		}
	}
}

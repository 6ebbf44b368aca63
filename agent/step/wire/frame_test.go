package wire

import (
	"net"
	"testing"

	"pgregory.net/rapid"
)

func TestFramesSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := net.Pipe()
		defer a.Close()
		defer b.Close()
		want := Frame{
			Kind: Kind(rapid.Byte().Draw(r, "kind")), Rank: int(rapid.Int32().Draw(r, "rank")), Number: int(rapid.Int32().Draw(r, "number")),
			Body: rapid.SliceOf(rapid.Byte()).Draw(r, "body"),
		}
		sent := make(chan error, 1)
		go func() { sent <- NewLink(a).Send(want) }()
		got, err := NewLink(b).Receive()
		if err != nil || <-sent != nil {
			r.Fatal(err)
		}
		if got.Kind != want.Kind || got.Rank != want.Rank || got.Number != want.Number || string(got.Body) != string(want.Body) {
			r.Errorf("got %+v, want %+v", got, want)
		}
	})
}

package pmix

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// recorder is an Exchange of three nodes, two ranks on the first and one on each other, that
// notes what it sends.
func newRecorder() (*Exchange, *[]string) {
	var said []string
	x := &Exchange{
		Layout: Layout{Nodes: []LayoutNode{{Name: "a", Ranks: []int{0, 1}}, {Name: "b", Ranks: []int{2}}, {Name: "c", Ranks: []int{3}}}},
		Send: func(node int, m Message) {
			said = append(said, fmt.Sprintf("%d %s %d %v %d %s", node, m.Op, m.ID, m.Ranks, m.Status, m.Data))
		},
		Abort: func(rank, code int, text string) {
			said = append(said, fmt.Sprintf("abort %d %d %s", rank, code, text))
		},
		Lost: func(rank int) { said = append(said, fmt.Sprintf("lost %d", rank)) },
		Say:  func(text string) { said = append(said, "say "+text) },
	}
	return x, &said
}

func TestExchange(t *testing.T) {
	x, said := newRecorder()
	for _, c := range []struct {
		node int
		m    Message
		want string
	}{
		{2, Message{Op: OpFence, Data: []byte("C1")}, ""},
		{2, Message{Op: OpFence, Data: []byte("C2")}, ""}, // its next one already
		{0, Message{Op: OpFence, Data: []byte("A1")}, ""},
		{0, Message{Op: OpFence, Ranks: []int{0, 2}, Data: []byte("a")}, ""}, // another set of ranks
		{1, Message{Op: OpFence, Data: []byte("B1")}, "0 fenced 0 [] 0 A1B1C1; 1 fenced 0 [] 0 A1B1C1; 2 fenced 0 [] 0 A1B1C1"},
		{1, Message{Op: OpFence, Ranks: []int{0, 2}, Data: []byte("b")}, "0 fenced 0 [0 2] 0 ab; 1 fenced 0 [0 2] 0 ab"},
		{0, Message{Op: OpFence, Data: []byte("A2")}, ""},
		{1, Message{Op: OpFence, Data: []byte("B2")}, "0 fenced 0 [] 0 A2B2C2; 1 fenced 0 [] 0 A2B2C2; 2 fenced 0 [] 0 A2B2C2"},
		{2, Message{Op: OpFence, Ranks: []int{0, 2}}, "2 fenced 0 [0 2] -27 "}, // none of its ranks
		{2, Message{Op: OpFence, Ranks: []int{3, 4}}, "2 fenced 0 [3 4] -27 "}, // no such rank
		{0, Message{Op: OpGet, ID: 7, Rank: 3}, "2 want 7 [] 0 "},
		{2, Message{Op: OpHave, ID: 7, Node: 0, Data: []byte("D")}, "0 got 7 [] 0 D"},
		{0, Message{Op: OpGet, ID: 8, Rank: 9}, "0 got 8 [] -46 "},
		{0, Message{Op: OpHave, ID: 8, Node: 5}, ""}, // no such node
		{1, Message{Op: OpAbort, Rank: 2, Status: 3, Text: "bad"}, "abort 2 3 bad"},
		{1, Message{Op: OpLost, Rank: 2}, "lost 2"},
		{1, Message{Op: OpSay, Text: "hello"}, "say hello"},
	} {
		*said = nil
		x.Handle(c.node, c.m)
		slices.Sort(*said)
		if got := strings.Join(*said, "; "); got != c.want {
			t.Errorf("%d: %+v: %q, want %q", c.node, c.m, got, c.want)
		}
	}
	if len(x.fences) != 0 {
		t.Errorf("%d fences are left", len(x.fences))
	}
}

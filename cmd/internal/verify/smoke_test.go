package verify

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// said is the output of a gang of two with which nothing is wrong.
func said(change ...string) string {
	text := `noise
0: cox-verify rank=0 of=2 node=a1 job=12 start=1700000000.500000000 end=1700000001.000000000 seen=2 devices=0 place=spine.leaf1.a1
cox-verify rank=1 of=2 node=a2 job=12 start=1700000000.520000000 end=1700000001.000000000 seen=2 devices=3 place=spine.leaf1.a2
`
	return strings.NewReplacer(change...).Replace(text)
}

func judged(o *Order, text string, nodes []Node) string {
	var b strings.Builder
	for _, c := range Judge(o, Read(text), nodes) {
		fmt.Fprintf(&b, "%v %s: %s\n", c.OK, c.What, c.Text)
		if !c.OK && c.Mend == "" {
			b.WriteString("nothing mends it\n")
		}
	}
	return b.String()
}

func TestJudge(t *testing.T) {
	pool := []Node{{"a1", "spine/leaf1", true}, {"a2", "spine/leaf1", true}, {"b1", "spine/leaf2", true}}
	if got, want := judged(&Order{Nodes: 2, GPUs: 1}, said(), pool), `true ranks: 2 on a1, a2
true job: all ranks are of job 12
true start: all met before any went on; by their clocks they started within 20ms
true devices: 1 on each
true leaves: 1, the fewest: spine/leaf1
`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for name, tt := range map[string]struct {
		order Order
		text  string
		nodes []Node
		want  string
	}{
		"silence":     {Order{Nodes: 2}, "srun: error\n", pool, "false ranks: none has said anything"},
		"one is gone": {Order{Nodes: 2, GPUs: 1}, strings.SplitAfter(said(), "leaf1.a1\n")[0], pool, "false ranks: 1 on a1; 2, each on a node of its own, were asked for"},
		"one node":    {Order{Nodes: 2, GPUs: 1}, said("node=a2", "node=a1", "leaf1.a2", "leaf1.a1"), pool, "false ranks: 2 on a1;"},
		"two jobs":    {Order{Nodes: 2, GPUs: 1}, said("node=a2 job=12", "node=a2 job=13"), pool, "false job: the ranks are of jobs 12, 13"},
		"alone":       {Order{Nodes: 2, GPUs: 1}, said("seen=2 devices=0", "seen=1 devices=0"), pool, "false start: rank 0 on a1 met 1 of 2"},
		"no device":   {Order{Nodes: 2, GPUs: 1}, said("devices=3", "devices="), pool, "false devices: rank 1 on a2 sees 0 of 1: none"},
		"too many":    {Order{Nodes: 2, GPUs: 1}, said("devices=3", "devices=3,4"), pool, "false devices: rank 1 on a2 sees 2 of 1: 3,4"},
		"container":   {Order{Nodes: 2, GPUs: 1}, said("place=", "given=GPU-5 place="), pool, "true devices: 1 on each: a1 GPU-5; a2 GPU-5"},
		"its image":   {Order{Nodes: 2, GPUs: 1}, said("place=", "given=all place="), pool, "true devices: 1 on each\n"},
		"given more":  {Order{Nodes: 2, GPUs: 1}, said("place=", "given=GPU-5,GPU-6 place="), pool, "false devices: the container of rank 0 on a1 was given 2 of 1: GPU-5,GPU-6"},
		"apart":       {Order{Nodes: 2, GPUs: 1}, said("a2", "b1"), pool, "false leaves: 2 where 1 had room: spine/leaf1, spine/leaf2"},
		"no room":     {Order{Nodes: 2, GPUs: 1}, said("a2", "b1"), []Node{{"a1", "x", true}, {"a2", "x", false}, {"b1", "y", true}}, "true leaves: 2, the fewest: x, y"},
		"not known":   {Order{Nodes: 2, GPUs: 1}, said("place=", "where="), nil, "true leaves: where a1 lies is not known"},
		"told there":  {Order{Nodes: 2, GPUs: 1}, said("leaf1.a2", "leaf2.a2"), nil, "true leaves: 2: spine/leaf1, spine/leaf2; whether fewer would have done is not known"},
	} {
		got := judged(&tt.order, tt.text, tt.nodes)
		if !strings.Contains(got, tt.want) || strings.Contains(got, "nothing mends it") || strings.HasPrefix(tt.want, "false") != strings.Contains(got, "false ") {
			t.Errorf("%s:\n%s\nwant %s", name, got, tt.want)
		}
	}
}

// TestScript: it is a script that a shell takes, with what was asked for in its directives.
func TestScript(t *testing.T) {
	text := string(Script(&Order{Nodes: 3, GPUs: 2, Dir: "/work", Partition: "gpu", Account: "nlp"}))
	for _, want := range []string{"--nodes=3 --ntasks-per-node=1", "--gpus-per-node=2", "--chdir=/work", "--partition=gpu", "--account=nlp", "--no-requeue"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	c := exec.Command("sh", "-n")
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("sh -n: %v: %s", err, out)
	}
	if got := string(Script(&Order{Nodes: 2})); strings.Contains(got, "gpus") || strings.Contains(got, "chdir") || strings.Contains(got, "partition") || strings.Contains(got, "account") {
		t.Errorf("directives that nobody asked for:\n%s", got)
	}
}

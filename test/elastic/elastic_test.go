// Package elastic tells stories of gangs that grow and shrink while they run, with real
// processes under the server as it is shipped.
package elastic

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/test/internal/plane"
)

func TestMain(m *testing.M) { plane.Main(m, nil) }

// site is a server with some nodes of one GPU each.
func site(t *testing.T, nodes int) *plane.Plane {
	t.Helper()
	return plane.New(t, func(c *config.Config) {
		c.Room.Nodes, c.Room.GPUsPerNode = nodes, 1
		c.Jobs.Grace = config.Duration(time.Hour)
	}).Start()
}

// member is what every rank of the elastic job runs: it notes that it began, each roster
// of which a signal tells it, and that it was asked to end, whereupon it stays until
// rank 0 knows of it: two changes that follow each other closely are told as one. It ends
// when the file DONE is there.
const member = `
told() { echo "rank $COX_GANG_RANK told of $(tr -d ' \n' < "$COX_GANG_FILE" | grep -o '"members".*')" >> DIARY; }
trap told WINCH
leave() {
	echo "rank $COX_GANG_RANK asked to end" >> DIARY
	until [ -e DONE ] || grep -q 'rank 0 told.*leaving' DIARY; do sleep 0.05; done
	exit 0
}
trap leave TERM
echo "rank $COX_GANG_RANK began" >> DIARY
until [ -e DONE ]; do sleep 0.05; done
`

// elastic submits a job of a smallest and a largest number of nodes.
func elastic(p *plane.Plane, program string, nodes string, more ...string) string {
	p.T.Helper()
	text := fmt.Sprintf("nodes: %s\nelastic: true\ngpus_per_node: 1\ncommand: [%s]\noutput: /dev/null\n%s\n", nodes, program, strings.Join(more, "\n"))
	s, err := p.Client.Submit(p.T.Context(), &api.Submit{
		Form: api.FormNative, File: "job.yaml", Text: text, Dir: p.Dir, Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Dir},
	})
	if err != nil {
		p.T.Fatal(err)
	}
	return s.ID.String()
}

// story is an elastic job with its diary and the file that ends it.
type story struct {
	*plane.Plane
	job   string
	diary *plane.Diary
	done  string
}

func begin(p *plane.Plane, nodes string) *story {
	s := &story{Plane: p, diary: p.Diary("diary"), done: p.Dir + "/done"}
	program := p.Program("member", strings.NewReplacer("DIARY", s.diary.Path, "DONE", s.done).Replace(member))
	s.job = elastic(p, program, nodes)
	return s
}

// nodes is how many the job holds.
func (s *story) nodes() int {
	n := map[string]bool{}
	for _, c := range s.Get(s.job).Claims {
		n[c.Node] = true
	}
	return len(n)
}

// told waits until a rank has been told of a roster of so many members, of which some
// are leaving.
func (s *story) told(rank, members, leaving int) {
	s.T.Helper()
	s.Await(fmt.Sprintf("rank %d is told of %d members, %d leaving", rank, members, leaving), func() bool {
		for _, line := range s.diary.Lines() {
			var r engine.Roster
			text, found := strings.CutPrefix(line, fmt.Sprintf("rank %d told of ", rank))
			if !found || json.Unmarshal([]byte("{"+text), &r) != nil {
				continue
			}
			gone := 0
			for _, m := range r.Members {
				if m.Leaving {
					gone++
				}
			}
			if len(r.Members) == members && gone == leaving {
				return true
			}
		}
		return false
	})
}

func (s *story) says(line string) {
	s.T.Helper()
	s.Await(line, func() bool {
		for _, l := range s.diary.Lines() {
			if l == line {
				return true
			}
		}
		return false
	})
}

// TestAJobGrowsAndShrinks: a job starts with its minimum, beside another one; that ends,
// and what it held is added. A third one comes and takes one node back, and starts when
// it is free. Every rank of the job is told of each change by signal and file. With a
// restart of the server in between.
func TestAJobGrowsAndShrinks(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(map[bool]string{false: "one server", true: "restart"}[restart], func(t *testing.T) {
			p := site(t, 3)
			first, second := p.Gate("first"), p.Gate("second")
			other := p.Submit(first.Wait, "--nodes=2", "--gpus-per-node=1")
			p.Until(other, "runs", plane.Is("RUNNING"))
			s := begin(p, "1-3")
			s.says("rank 0 began")
			if n := s.nodes(); n != 1 {
				t.Fatalf("it starts with %d nodes", n)
			}
			first.Open()
			p.Ends(other, "COMPLETED")
			s.says("rank 1 began")
			s.says("rank 2 began")
			s.told(0, 3, 0)
			if restart {
				p.Stop()
				p.Start()
			}
			if n := s.nodes(); n != 3 {
				t.Errorf("it has grown to %d nodes", n)
			}
			third := p.Submit(second.Wait, "--gpus=1")
			s.told(0, 3, 1)
			p.Until(third, "runs", plane.Is("RUNNING"))
			s.told(0, 2, 0)
			if n := s.nodes(); n != 2 {
				t.Errorf("it has shrunk to %d nodes", n)
			}
			asked := map[string]bool{} // a rank may be asked twice
			for _, line := range s.diary.Lines() {
				if strings.HasSuffix(line, "asked to end") {
					asked[line] = true
				}
			}
			if len(asked) != 1 {
				t.Errorf("these were asked to end: %v", asked)
			}
			second.Open()
			p.Ends(third, "COMPLETED")
			s.says("rank 3 began") // a rank is never given twice
			s.told(0, 3, 0)
			if err := os.WriteFile(s.done, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p.Ends(s.job, "COMPLETED")
			p.Settle()
		})
	}
}

// TestExecInWhatWasAdded: a command runs beside a rank that was added, in its environment
// and on its node.
func TestExecInWhatWasAdded(t *testing.T) {
	p := site(t, 2)
	s := begin(p, "1-2")
	s.says("rank 0 began")
	s.says("rank 1 began")
	one := 1
	p.Await("a command beside rank 1", func() bool { // refused until the server has heard that it runs
		var out strings.Builder
		code, err := p.Client.Exec(t.Context(), s.job, api.Exec{Command: []string{"sh", "-c", "echo $COX_GANG_RANK"}, Rank: &one}, client.ExecStreams{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out})
		return err == nil && code.Status == 0 && strings.TrimSpace(out.String()) == "1"
	})
	if err := os.WriteFile(s.done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.Ends(s.job, "COMPLETED")
	p.Settle()
}

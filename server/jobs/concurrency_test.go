package jobs

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/servertest"
)

// TestWhatIsNamedTwiceIsReadOnce names a large array again and again, in all forms.
func TestWhatIsNamedTwiceIsReadOnce(t *testing.T) {
	p := servertest.NewPlane()
	var indices []uint32
	for i := range uint32(1000) {
		indices = append(indices, i)
	}
	p.Fill(t, 1, "anna", 2001, &job.ArraySpec{Indices: indices})
	r := start(t, p, nil)
	names := slices.Repeat([]string{"1", "1.0", "1.1", "1+0", "1.batch"}, 2000)
	ids, err := parseIDs(names)
	if err != nil || len(ids) != 1 {
		t.Errorf("%d of %d are left, %v", len(ids), len(names), err)
	}
	got, err := r.As(t, "anna").Change(t.Context(), &api.Change{Select: api.Select{IDs: names}, Verb: api.VerbHold})
	if err != nil || got.Changed != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseIDs(make([]string, mostIDs+1)); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("too many: %v", err)
	}
	var sets []string
	for i := range mostSets + 1 {
		sets = append(sets, fmt.Sprintf("1_[0-%d]", i+1))
	}
	if _, err := parseIDs(sets); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
		t.Errorf("sets: %v", err)
	}
	lists := slices.Repeat([]string{"v[1-60000]", "w[1-60000]"}, 20)
	if _, err := selectJobs(api.Select{Nodes: lists}, nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("host lists: %v", err)
	}
}

// TestSlowHeadsAndBodiesEnd sends a request byte by byte, or not to its end.
func TestSlowHeadsAndBodiesEnd(t *testing.T) {
	r := start(t, servertest.NewPlane(), func(c *Config) { c.Patience = 50 * time.Millisecond })
	secret := r.Token(t, "anna", nil)
	for what, begin := range map[string]string{
		"head": "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"body": "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\nContent-Length: 100\r\n\r\n{",
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, begin); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
		if _, err := bufio.NewReader(c).ReadString(0); err != io.EOF { // whatever is answered, it ends
			t.Errorf("%s: %v", what, err)
		}
	}
}
